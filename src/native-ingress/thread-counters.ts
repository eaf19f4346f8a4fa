/**
 * What a front counts, in memory that it shares with the main thread: of its clients, by the names
 * that the HTTP server's desk has for it, and of what it leaves to that. The front writes, the main
 * thread reads. `native/src/submit/counters.rs` has the same names in the same order.
 */

import { REJECTIONS, type RejectionReason } from "../core/errors.ts";
import type { HttpCounters, HttpStats } from "../http/request-tracker.ts";
import { type Counters, countersMemory, sharedCounters } from "../runtime/shared-counters.ts";

export const HTTP_COUNTER_NAMES = [
  "connections",
  "connectionsRejected",
  "connectionsCrowded",
  "connectionsSlow",
  "requests",
  "requestsOpen",
  "accepted",
  "aborted",
  "expired",
  "closed",
  "emptyBodyClosed",
  "responsesDeferred",
  "responsesUnread",
  "handlerErrors",
] as const satisfies readonly (keyof HttpCounters)[];

// The table's keys, which `Object.keys` answers as plain strings.
export const REJECTION_NAMES = Object.keys(REJECTIONS) as readonly RejectionReason[];

/**
 * Why a front leaves a request to the main thread: it has no pass for the key, the limit is used
 * up, no leader takes copies as they come, the books are behind, or anything else.
 */
export const PROXY_REASONS = ["key", "limit", "leaders", "recordRing", "other"] as const;

export type ProxyReason = (typeof PROXY_REASONS)[number];
export type ProxiedCounts = Readonly<Counters<ProxyReason>>;

export interface IngressThreadCounters extends HttpStats {
  /** Requests that it left to the main thread, by why. */
  readonly proxied: ProxiedCounts;
}

const PROXIED_AT = HTTP_COUNTER_NAMES.length + REJECTION_NAMES.length;

export function ingressThreadCountersMemory(): SharedArrayBuffer {
  return countersMemory(PROXIED_AT + PROXY_REASONS.length);
}

export function ingressThreadCounters(memory: SharedArrayBuffer): IngressThreadCounters {
  return {
    counters: sharedCounters(HTTP_COUNTER_NAMES, memory),
    rejections: sharedCounters(REJECTION_NAMES, memory, HTTP_COUNTER_NAMES.length),
    proxied: sharedCounters(PROXY_REASONS, memory, PROXIED_AT),
  };
}
