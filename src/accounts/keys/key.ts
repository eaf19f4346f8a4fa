/** What is known of a key: never the key itself, only its SHA-256, its owner and its limits. */

import type { KeyPolicy } from "./policy.ts";

/** What the accounts on a plan may do. */
export interface Plan {
  readonly name: string;
  /** Requests a second in the long run; above 0, may be below 1. */
  readonly ratePerSecond: number;
  /** Requests that are let through at once; at least 1. */
  readonly burst: number;
  /** Whether one limit holds over all edges; else it holds for each edge by itself. */
  readonly shared: boolean;
}

/** One key that is good. */
export interface KeyRow {
  /** 32 bytes. */
  readonly sha256: Buffer;
  /** The key's name in limits and in usage, 32 hexadecimal digits; never the key itself. */
  readonly keyId: string;
  readonly account: string;
  readonly plan: Plan;
  /** The owner's own words for it; null for none. */
  readonly label: string | null;
  /** What narrows this one key; null where its account's plan alone holds. */
  readonly policy: KeyPolicy | null;
}

/** Whose key it is, and what it may do. */
export interface Principal {
  readonly keyId: string;
  readonly account: string;
  readonly plan: Plan;
  readonly policy: KeyPolicy | null;
}

/** A key as the table has it. */
export type StoredKey = Omit<KeyRow, "label">;

/** The same as it is read from a connection: digest and id lie in bytes that are only lent. */
export interface LentKey extends Pick<KeyRow, "account" | "plan" | "policy"> {
  readonly bytes: Buffer;
  /** Where the 32 bytes of the digest begin. */
  readonly sha256At: number;
  /** Where the 16 bytes of the id begin. */
  readonly idAt: number;
}
