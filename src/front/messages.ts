/**
 * What the main thread and a front say to each other, beside the requests that are moved. Plain
 * records that can be cloned; nothing here is for a single transaction.
 */

import type { MessagePort } from "node:worker_threads";
import type { PassNews, PassReturned } from "../ingress/pass.ts";

/** What a front is started with: memory that both sides see, and handles good on every thread. */
export interface FrontTask {
  /** The word that wakes the main thread; shared by all fronts. */
  readonly bell: SharedArrayBuffer;
  /** For its records, and for its figures. */
  readonly records: SharedArrayBuffer;
  readonly figures: SharedArrayBuffer;
  /** Where leaders are reached, as the sender says. */
  readonly routes: SharedArrayBuffer;
  /** What was accepted a moment ago, by whomever. */
  readonly seen: SharedArrayBuffer;
  /** The states of limits. */
  readonly passes: SharedArrayBuffer;
  /** The native decoder. */
  readonly decoder: number;
  /** Whether its thread goes before others. */
  readonly realtime: boolean;
  /** Requests that are moved, and what is done to their responses. */
  readonly moved: MessagePort;
  readonly http: {
    readonly requestDeadlineMs: number;
    readonly connectionsMax: number;
  };
}

/** What the thread of a front is started with. */
export interface ThreadTask extends FrontTask {
  /** A word that is 1 once the thread was told to end and has closed every connection. */
  readonly closed: SharedArrayBuffer;
}

export type ToThread =
  | PassNews
  | { readonly kind: "drain" }
  | { readonly kind: "stop" }
  /** Its thread is to end at once, whatever is in hand; nothing hands connections on any more. */
  | { readonly kind: "end" };

export type FromThread =
  | PassReturned
  /** It takes connections: what the HTTP server of the main thread hands them to. */
  | { readonly kind: "up"; readonly descriptor: number }
  /** To be logged. */
  | { readonly kind: "fault"; readonly error: string; readonly message: string }
  /** Something was thrown that nobody caught; every connection is closed. */
  | { readonly kind: "died"; readonly error: string }
  /** All that was in hand is answered, and every connection is closed. */
  | { readonly kind: "stopped" };
