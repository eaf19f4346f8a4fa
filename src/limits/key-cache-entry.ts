/**
 * What a thread that takes requests is told of a key, so that it lets them in by itself; and what
 * it answers. Plain records, which a port between threads copies.
 */

import type { KeyLimit, RatePlan } from "./access-control.ts";

/** A key that is good, whose it is, what narrows it, and where its limits are. */
export interface KeyGrant {
  /** The key itself. */
  readonly token: string;
  readonly keyId: string;
  readonly account: string;
  readonly plan: RatePlan;
  /** From when on the key is no longer good, in milliseconds since the Unix epoch. */
  readonly expiresUnixMs: number | null;
  /** Networks that it may be used from; null for everywhere. */
  readonly ranges: readonly string[] | null;
  /** A limit below the account's; null for none. */
  readonly limit: KeyLimit | null;
  /** Whether the account's limit holds over all edges, and so lies among the shared cells. */
  readonly isShared: boolean;
  readonly accountLimitSlot: number;
  /** Of the limit below the account's; NO_LIMIT_SLOT for none. */
  readonly keyLimitSlot: number;
  /** Its place among all passes, and its mark's: another's only after it was given back. */
  readonly keySlot: number;
}

/** To the thread. */
export type KeyUpdate =
  | { readonly kind: "grant"; readonly grant: KeyGrant }
  | { readonly kind: "revoke"; readonly token: string; readonly keySlot: number };

/** From the thread: it does not use that pass any more. */
export interface KeySlotReleased {
  readonly kind: "slotReleased";
  readonly keySlot: number;
}

/** One direction of what joins two threads; messages arrive in their order. */
export interface KeyUpdatePort<T> {
  post(message: T): void;
}
