/** The data of a key: never the key itself, only its SHA-256, owner and limits. */

import type { KeyPolicy } from "./policy.ts";

/** What accounts on a plan may do. */
export interface Plan {
  readonly name: string;
  /** Sustained requests per second; above 0, may be below 1. */
  readonly ratePerSecond: number;
  /** Requests accepted in one burst; at least 1. */
  readonly burst: number;
  /** Whether one limit applies across all edges; otherwise per edge. */
  readonly shared: boolean;
}

/** One valid key. */
export interface KeyRow {
  /** 32 bytes. */
  readonly sha256: Buffer;
  /** The key's id in limits and usage, 32 hexadecimal digits; never the key itself. */
  readonly keyId: string;
  readonly account: string;
  readonly plan: Plan;
  /** The owner's description; null for none. */
  readonly label: string | null;
  /** Restrictions of this key; null if only its account's plan applies. */
  readonly policy: KeyPolicy | null;
  /** Whether it is the public key that follows from an API key, which has a row of its own. */
  readonly isDerived: boolean;
}

/** The owner of a key, and its limits. */
export interface Principal {
  readonly keyId: string;
  readonly account: string;
  readonly plan: Plan;
  readonly policy: KeyPolicy | null;
}

/** A key as stored in the table. */
export type StoredKey = Omit<KeyRow, "label">;

/** The same as read from a connection: digest and id are in borrowed bytes. */
export interface LentKey extends Pick<KeyRow, "account" | "plan" | "policy" | "isDerived"> {
  readonly bytes: Buffer;
  /** Offset of the 32 bytes of the digest. */
  readonly sha256At: number;
  /** Offset of the 16 bytes of the id. */
  readonly idAt: number;
}
