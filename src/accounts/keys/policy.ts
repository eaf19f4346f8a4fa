/**
 * Restrictions of one key besides its account's plan: expiry, allowed networks, and a lower limit.
 * Most keys have none.
 */

import type { Networks } from "../../runtime/networks.ts";

export interface KeyPolicy {
  /** Expiry in milliseconds since the Unix epoch; null for never. */
  readonly expiresUnixMs: number | null;
  /** Networks from which it may be used; null for any. */
  readonly networks: Networks | null;
  /** A limit below the account's; null for none. */
  readonly limit: KeyLimit | null;
}

export interface KeyLimit {
  readonly ratePerSecond: number;
  readonly burst: number;
}
