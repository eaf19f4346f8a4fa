/**
 * How the sender reacts to each way in which a connection ends: one table, pure.
 *
 * Waits are in units of `reconnectMs`, the time in which a leader grants one address one more new
 * connection (Agave: eight per minute). The wait counts from the end of the connection, and from
 * the attempt for a leader that never answered or a local error. Each consecutive failure doubles
 * the wait, but for an eviction after a delivery (`reconnect-backoff.ts`). A full node evicts idle
 * connections: such a one is reopened later, just before it is needed.
 *
 * Close codes: Agave `streamer/src/nonblocking/quic.rs`, 4.3, 2026-11. Firedancer closes with
 * transport codes only.
 */

import type { CloseCause } from "./transport.ts";

export interface ClosePolicy {
  /** The first wait, in units of `reconnectMs`. */
  readonly wait: number;
  /** What the wait counts from. */
  readonly from: "attempt" | "end";
  /** `before_window`: when the leader window requires it, and later after each idle connection. */
  readonly next: "soon" | "before_window";
  /** Whether no second connection replaces a live one until the next connection is admitted. */
  readonly single: boolean;
  /** The share of its reliability score that the leader loses. */
  readonly score: number;
  /** Whether the leader may have left its address, if the connection was used or never answered. */
  readonly gone: boolean;
  /** What the leader signals by it. */
  readonly meaning: string;
}

export const CLOSE_POLICIES = {
  closed: {
    wait: 1 / 8,
    from: "end",
    next: "soon",
    single: false,
    score: 0.05,
    gone: true,
    meaning: "code 0: closed without an error",
  },
  evicted: {
    wait: 1 / 8,
    from: "end",
    next: "before_window",
    single: false,
    score: 0.1,
    // A full node evicts all the time. A node that shut down does not answer the next attempt.
    gone: false,
    meaning: "code 1: evicted for another connection, or the node shuts down",
  },
  disallowed: {
    wait: 1,
    from: "end",
    next: "soon",
    single: true,
    score: 0.25,
    gone: false,
    meaning: "code 2: too many new connections, or the node rejects this identity",
  },
  too_many_streams: {
    wait: 1 / 8,
    from: "end",
    next: "soon",
    single: false,
    score: 0.1,
    gone: false,
    meaning: "code 3: more streams than granted; sent by servers before 4.0",
  },
  too_many: {
    wait: 1,
    from: "end",
    next: "soon",
    single: true,
    score: 0.1,
    gone: false,
    meaning: "code 4: too many connections of this address or identity at once",
  },
  invalid_stream: {
    wait: 1 / 8,
    from: "end",
    next: "soon",
    single: false,
    score: 0,
    gone: false,
    meaning: "code 5: a transaction larger than it accepts; the sender stops sending it large ones",
  },
  other_code: {
    wait: 1,
    from: "end",
    next: "soon",
    single: false,
    score: 0.25,
    gone: false,
    meaning: "any other code",
  },
  refused: {
    wait: 1 / 4,
    from: "end",
    next: "soon",
    single: false,
    score: 0.25,
    gone: true,
    meaning: "CONNECTION_REFUSED: the node already has thousands of connections",
  },
  transport: {
    wait: 1,
    from: "end",
    next: "soon",
    single: false,
    score: 0.5,
    gone: false,
    meaning: "a QUIC or TLS error",
  },
  unanswered: {
    wait: 1,
    from: "attempt",
    next: "soon",
    single: true,
    score: 0.5,
    gone: true,
    meaning: "no answer to the handshake: unreachable, or the address is over its rate limit",
  },
  silent: {
    wait: 1 / 8,
    from: "end",
    next: "soon",
    single: false,
    score: 0.25,
    gone: true,
    meaning: "after the handshake: idle timeout, stateless reset, or no stream granted in time",
  },
  local: {
    wait: 1,
    from: "attempt",
    next: "soon",
    single: false,
    score: 0.25,
    gone: false,
    meaning: "closed locally after an error in its packets or in the engine",
  },
} as const satisfies Record<string, ClosePolicy>;

export type CloseReason = keyof typeof CLOSE_POLICIES;

// `Object.keys` loses the key type; these are the keys of the table.
export const CLOSE_REASONS = Object.keys(CLOSE_POLICIES) as readonly CloseReason[];

/** Indexed by application close code. */
const APP_CODES: readonly CloseReason[] = [
  "closed",
  "evicted",
  "disallowed",
  "too_many_streams",
  "too_many",
  "invalid_stream",
];
/** RFC 9000 section 20.1. */
const CONNECTION_REFUSED = 0x02;

/** The close reason of a cause; `established`: the handshake was complete by then. */
export function closeReasonOf({ kind, code }: CloseCause, established: boolean): CloseReason {
  if (kind === "app") return APP_CODES[code] ?? "other_code";
  if (kind === "transport") return code === CONNECTION_REFUSED ? "refused" : "transport";
  if (kind === "silence") return established ? "silent" : "unanswered";
  return "local";
}
