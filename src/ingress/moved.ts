/**
 * What a front and the main thread tell each other about a request that is moved: the request goes
 * to the main thread, which answers it with the code that it has for its own, and what it does to
 * the response comes back and is done to the real one. Each request has a number of its front's.
 */

import type { Port } from "../core/port.ts";

/** Where a request came in. */
export type Door = "raw" | "rpc" | "open" | "rest";

/**
 * Why a front does not answer by itself: it has no pass for the key, the limit is used up, no
 * leader takes copies as they come, the main thread is behind with its books, or anything else.
 */
export type MoveReason = "key" | "limit" | "leaders" | "books" | "other";

/** A request whose framing is sound and whose size is within what its path reads or ignores. */
export interface MovedHead {
  readonly door: Door;
  readonly why: MoveReason;
  /** Whether the limit was charged for it. */
  readonly isPaid: boolean;
  /** The key, "" for none. */
  readonly token: string;
  /** In bytes, as Content-Length has it. */
  readonly bodySize: number;
  /** `Clock.nowNs` when it came in, or when its body was complete. */
  readonly receivedNs: number;
  /** What of a request matters that is no submission; null for a submission. */
  readonly page: MovedPage | null;
}

export interface MovedPage {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: string;
  readonly lastEventId: string;
}

export interface MovedRequest extends MovedHead {
  readonly kind: "request";
  readonly number: number;
  /** The address of the connection's other end in text form. */
  readonly remoteAddress: string;
  /** null: it follows when it is asked for. */
  readonly body: ArrayBuffer | null;
}

export type ToMain =
  | MovedRequest
  /** The whole body, which was asked for. */
  | { readonly kind: "body"; readonly number: number; readonly body: ArrayBuffer }
  /** The client left. */
  | { readonly kind: "gone"; readonly number: number }
  /** The client takes in more slowly than it is given. */
  | { readonly kind: "stalled"; readonly number: number }
  /** So many characters of pieces are no longer on the way, and nothing else is. */
  | { readonly kind: "taken"; readonly number: number; readonly chars: number };

/** One call of a response, or `receive`: the body is asked for. */
export type WireAct =
  | readonly ["status", string]
  | readonly ["header", string, string]
  | readonly ["write", string]
  | readonly ["tryEnd", string]
  | readonly ["end", string, boolean]
  | readonly ["endWithoutBody"]
  | readonly ["pause"]
  | readonly ["close"]
  | readonly ["receive"];

/** What a turn of the main thread did to one response, in this order. */
export interface ToFront {
  readonly number: number;
  readonly acts: readonly WireAct[];
}

/** The ends of one line. */
export type FrontPort = Port<readonly ToMain[], readonly ToFront[]>;
export type MainPort = Port<readonly ToFront[], readonly ToMain[]>;
