/**
 * Messages between the main thread and a thread with a key cache: what the cache needs to accept
 * requests of a key, and the release of a slot. Plain records, which a message port copies.
 */

import type { KeyLimit, RatePlan } from "./access-control.ts";

/** A valid key with its principal, policy and limit slots. */
export interface KeyGrant {
  /** The key itself. */
  readonly token: string;
  readonly keyId: string;
  readonly account: string;
  readonly plan: RatePlan;
  /** When the key expires, in milliseconds since the Unix epoch; null for never. */
  readonly expiresUnixMs: number | null;
  /** Networks that it may be used from; null for any. */
  readonly ranges: readonly string[] | null;
  /** A limit below the account's; null for none. */
  readonly limit: KeyLimit | null;
  /** Whether the account's limit is global: it applies to all edges and has a global slot. */
  readonly isGlobal: boolean;
  readonly accountLimitSlot: number;
  /** Of the limit below the account's; NO_LIMIT_SLOT for none. */
  readonly keyLimitSlot: number;
  /** Index of the cached key and of its used mark; reused only after it was released. */
  readonly keySlot: number;
}

/** From the main thread. */
export type KeyUpdate =
  | { readonly kind: "grant"; readonly grant: KeyGrant }
  | { readonly kind: "revoke"; readonly token: string; readonly keySlot: number };

/** From the thread: it no longer uses that slot. */
export interface KeySlotReleased {
  readonly kind: "slotReleased";
  readonly keySlot: number;
}

/** One direction of the channel between two threads; messages arrive in order. */
export interface KeyUpdatePort<T> {
  post(message: T): void;
}
