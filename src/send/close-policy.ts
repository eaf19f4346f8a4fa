/**
 * What each way in which a connection ends asks for: one table, pure.
 *
 * Pauses are in units of `reconnectMs`, the time in which a leader grants an address one more new
 * connection (Agave: eight a minute). A leader that said no is waited for from its answer on, one
 * that said nothing from the attempt on. Each failure in a row doubles the pause. An evicted
 * connection was idle on a node that is full: it is made again later, just before it is needed.
 *
 * Close codes: Agave `streamer/src/nonblocking/quic.rs`, 4.3, 2026-11. Firedancer closes with
 * transport codes alone.
 */

import type { SendCounters } from "./send-counters.ts";
import type { CloseCause } from "./transport.ts";

export interface ClosePolicy {
  /** The first pause, in units of `reconnectMs`. */
  readonly wait: number;
  /** What the pause is counted from. */
  readonly from: "attempt" | "end";
  /** `before_window`: no sooner than the leader's turn demands, and later each time. */
  readonly next: "soon" | "before_window";
  /** Whether no second connection is opened to replace one that lives, until a turn went well. */
  readonly single: boolean;
  /** The share of its standing that the leader loses: how little it can be counted on. */
  readonly score: number;
  /** Whether the leader may have left its address, if it was in use or does not answer there. */
  readonly gone: boolean;
  readonly counter: keyof Omit<SendCounters, "reasons">;
  /** What the leader says by it. */
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
    counter: "endedOtherCode",
    meaning: "code 0: closed without a complaint",
  },
  evicted: {
    wait: 1 / 8,
    from: "end",
    next: "before_window",
    single: false,
    score: 0.1,
    // A node that is full evicts all the time. One that went down does not answer the next attempt.
    gone: false,
    counter: "endedDropped",
    meaning: "code 1: evicted for another, or the node goes down",
  },
  disallowed: {
    wait: 1,
    from: "end",
    next: "soon",
    single: true,
    score: 0.25,
    gone: false,
    counter: "endedDisallowed",
    meaning: "code 2: too many new connections, or not welcome there",
  },
  too_many_streams: {
    wait: 1 / 8,
    from: "end",
    next: "soon",
    single: false,
    score: 0.1,
    gone: false,
    counter: "endedOtherCode",
    meaning: "code 3: more streams than granted, of servers before 4.0",
  },
  too_many: {
    wait: 1,
    from: "end",
    next: "soon",
    single: true,
    score: 0.1,
    gone: false,
    counter: "endedTooMany",
    meaning: "code 4: too many connections of this address or identity at once",
  },
  invalid_stream: {
    wait: 1 / 8,
    from: "end",
    next: "soon",
    single: false,
    score: 0,
    gone: false,
    counter: "endedInvalidStream",
    meaning: "code 5: a transaction larger than it takes; large ones are kept from it",
  },
  other_code: {
    wait: 1,
    from: "end",
    next: "soon",
    single: false,
    score: 0.25,
    gone: false,
    counter: "endedOtherCode",
    meaning: "any other code",
  },
  refused: {
    wait: 1 / 4,
    from: "end",
    next: "soon",
    single: false,
    score: 0.25,
    gone: true,
    counter: "endedTransport",
    meaning: "CONNECTION_REFUSED: thousands are connected already",
  },
  transport: {
    wait: 1,
    from: "end",
    next: "soon",
    single: false,
    score: 0.5,
    gone: false,
    counter: "endedTransport",
    meaning: "a fault of QUIC or TLS",
  },
  unanswered: {
    wait: 1,
    from: "attempt",
    next: "soon",
    single: true,
    score: 0.5,
    gone: true,
    counter: "endedUnresponsive",
    meaning: "no answer to the handshake: unreachable, or the address is over its rate",
  },
  silent: {
    wait: 1 / 8,
    from: "end",
    next: "soon",
    single: false,
    score: 0.25,
    gone: true,
    counter: "endedUnresponsive",
    meaning: "silence on a connection that worked, or the leader has forgotten it",
  },
  local: {
    wait: 1,
    from: "attempt",
    next: "soon",
    single: false,
    score: 0.25,
    gone: false,
    counter: "endedLocal",
    meaning: "given up on this side, for a fault in its packets or in the engine",
  },
} as const satisfies Record<string, ClosePolicy>;

export type CloseReason = keyof typeof CLOSE_POLICIES;

export const CLOSE_REASONS: readonly CloseReason[] = [
  "closed",
  "evicted",
  "disallowed",
  "too_many_streams",
  "too_many",
  "invalid_stream",
  "other_code",
  "refused",
  "transport",
  "unanswered",
  "silent",
  "local",
];

/** By application code. */
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

/** The row of an ending; `established` is whether the handshake was done by then. */
export function closeReasonOf({ kind, code }: CloseCause, established: boolean): CloseReason {
  if (kind === "app") return APP_CODES[code] ?? "other_code";
  if (kind === "transport") return code === CONNECTION_REFUSED ? "refused" : "transport";
  if (kind === "silence") return established ? "silent" : "unanswered";
  return "local";
}
