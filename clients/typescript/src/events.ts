/** What a client learns besides the verdicts. */

import type { NativeEvent } from "./addon.ts";
import { ClientError } from "./errors.ts";
import { type Verdict, verdictOf } from "./verdict.ts";

export type ClientEvent =
  /** The edge at this address has authenticated the client. */
  | { readonly kind: "connected"; readonly address: string }
  /** The connection is lost, or an attempt to connect failed; the client tries again. */
  | { readonly kind: "disconnected"; readonly error: ClientError }
  /** The client has given up for good, and this is the last event: make a new client. */
  | { readonly kind: "failed"; readonly error: ClientError }
  /** The limits of the account or key; `credit`: transactions that are admitted at this moment. */
  | {
      readonly kind: "limits";
      readonly ratePerSecond: number;
      readonly burst: number;
      readonly credit: number;
    }
  /** The least tip, and the accounts of which one must be paid, in base58. */
  | {
      readonly kind: "tips";
      readonly lamportsMin: bigint;
      readonly accounts: readonly string[];
    }
  /** The edge is about to end; the client goes to the address, if there is one. */
  | { readonly kind: "draining"; readonly address: string | null }
  /** What became of a transaction of the account; with `receipts` only. */
  | { readonly kind: "receipt"; readonly verdict: Verdict }
  /** Receipts that the edge dropped because the client read too slowly. */
  | { readonly kind: "receipts_lost"; readonly count: number };

/** Null for an event that this version does not know. */
export function eventOf(native: NativeEvent): ClientEvent | null {
  const { kind, address, error, numbers, lamportsMin, accounts, verdict } = native;
  const [first = 0, second = 0, third = 0] = numbers;
  switch (kind) {
    case "connected":
      return { kind, address: address ?? "" };
    case "disconnected":
    case "failed":
      return error === undefined ? null : { kind, error: new ClientError(error) };
    case "limits":
      return { kind, ratePerSecond: first, burst: second, credit: third };
    case "tips":
      return { kind, lamportsMin: lamportsMin ?? 0n, accounts };
    case "draining":
      return { kind, address: address ?? null };
    case "receipt":
      return verdict === undefined ? null : { kind, verdict: verdictOf(verdict) };
    case "receipts_lost":
      return { kind, count: first };
    default:
      return null;
  }
}
