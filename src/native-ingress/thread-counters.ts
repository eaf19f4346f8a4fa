/**
 * Counters of an ingress thread, in memory shared with the main thread: those of its clients, named
 * as in the HTTP server's request tracker, those of proxied requests, the records of rejections
 * that it did not write because too many were unread, the TLS handshakes, and those of QUIC
 * clients. The ingress thread writes and the main thread reads. `native/src/submit/counters.rs` has
 * the same names in the same order.
 */

import { REJECTION_NAMES } from "../core/errors.ts";
import type { HttpCounters, HttpStats } from "../http/request-tracker.ts";
import { type Counters, countersMemory, sharedCounters } from "../runtime/shared-counters.ts";

export const HTTP_COUNTER_NAMES = [
  "connections",
  "connectionsRejected",
  "connectionsEvicted",
  "connectionsOverAddressLimit",
  "connectionsReadTimeout",
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

/** Requests proxied to the main thread, and rejections without a record. */
export const REQUEST_COUNTERS = ["proxied", "rejectionRecordsDropped"] as const;

export type RequestCounts = Readonly<Counters<(typeof REQUEST_COUNTERS)[number]>>;

export interface IngressThreadCounters extends HttpStats {
  readonly requests: RequestCounts;
  readonly handshakes: HandshakeCounts;
  readonly quic: QuicCounts;
}

/**
 * How a TLS handshake ended: a new session or a resumed one; the two sides did not agree, the
 * client spoke no TLS, it took too long, or the client left.
 */
export const HANDSHAKE_RESULTS = [
  "full",
  "resumed",
  "failed",
  "notTls",
  "timedOut",
  "aborted",
] as const;

export type HandshakeCounts = Readonly<Counters<(typeof HANDSHAKE_RESULTS)[number]>>;

/** Of QUIC clients, as `QuicNumbers` of `native/src/quic_server/handler.rs`. */
export const QUIC_COUNTERS = [
  "connections",
  "handshakes",
  "followers",
  "connected",
  "handshakesRefused",
  "handshakesDelayed",
  "retries",
  "streamsAborted",
  "datagramsDropped",
  "datagramsRefused",
  "datagramsForwarded",
  "forwardsDropped",
  "receiptsDropped",
  "streamsWithheld",
  "landingsUnawaited",
  "panics",
] as const;

export type QuicCounts = Readonly<Counters<(typeof QUIC_COUNTERS)[number]>>;

const REQUESTS_AT = HTTP_COUNTER_NAMES.length + REJECTION_NAMES.length;
const HANDSHAKES_AT = REQUESTS_AT + REQUEST_COUNTERS.length;
const QUIC_AT = HANDSHAKES_AT + HANDSHAKE_RESULTS.length;

export function ingressThreadCountersMemory(): SharedArrayBuffer {
  return countersMemory(QUIC_AT + QUIC_COUNTERS.length);
}

export function ingressThreadCounters(memory: SharedArrayBuffer): IngressThreadCounters {
  return {
    counters: sharedCounters(HTTP_COUNTER_NAMES, memory),
    rejections: sharedCounters(REJECTION_NAMES, memory, HTTP_COUNTER_NAMES.length),
    requests: sharedCounters(REQUEST_COUNTERS, memory, REQUESTS_AT),
    handshakes: sharedCounters(HANDSHAKE_RESULTS, memory, HANDSHAKES_AT),
    quic: sharedCounters(QUIC_COUNTERS, memory, QUIC_AT),
  };
}
