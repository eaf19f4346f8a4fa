/**
 * What the sender needs of an engine: connections that take whole transactions. The portable
 * engine is `transport-quic.ts`; tests have one without a network.
 *
 * Nothing here throws. A connection tells of itself through `ConnectionEvents`; after `ended` it
 * is dead, stays silent and takes nothing.
 *
 * Decision: docs/decisions/0030-two-engines-one-transport.md
 */

import type { Identity } from "./identity.ts";

/** Why a connection ended. */
export interface CloseCause {
  /**
   * `app`: the leader closed with an application code (Agave's are 1, 2, 4, 5). `transport`: it
   * closed with a QUIC or TLS code. `silence`: the handshake or the idle time ran out, on this
   * side, or on the leader's, which has forgotten the connection. `local`: this side gave up,
   * because of a fault of the leader's packets or of the engine.
   */
  readonly kind: "app" | "transport" | "silence" | "local";
  /** The code for `app` and `transport`, otherwise 0. */
  readonly code: number;
}

/** Answers of `Connection.send` that are not a stream. */
export const BLOCKED = -1;
export const CLOSED = -2;
export const TOO_LARGE = -3;

/**
 * What became of a stream. An engine that sends on `send` knows IN_FLIGHT, ACKED and STOPPED; one that
 * may leave the copy to another thread also WAITING, and from DROPPED on that it never went on the
 * wire: DROPPED + i, where i is the place of the reason in DELIVERY_REASONS.
 */
export const IN_FLIGHT = 0;
export const ACKED = 1;
export const STOPPED = 2;
export const QUEUED = 3;
export const DROPPED = 16;
export type StreamResult = number;

/** What other threads need to send over a connection, and what enters their copies afterwards. */
export interface SharedConnection {
  /** The engine's handle of it. */
  readonly peer: number;
  /** Where its stream numbers are drawn, of the cells of the shared routes. */
  readonly cell: number;
  /** Most bytes that this leader takes on one stream. */
  readonly streamBytesMax: number;
  /** Whether more copies wait in the engine than it takes in a moment. May ask the engine. */
  isBacklogged(nowNs: number): boolean;
  /**
   * Another thread gave a copy to the engine as this stream; `waits`: it is not known to be on the
   * wire. From now on `fate` knows of it. Answers whether there was news of it before.
   */
  recordSend(stream: number, isQueued: boolean): boolean;
}

export interface EngineConnection {
  /** For other threads; null where they cannot send over it. */
  readonly shared: SharedConnection | null;
  /** The handshake is done. */
  readonly established: boolean;
  /** The leader has granted a stream at least once. */
  readonly admitted: boolean;
  /** Smoothed round trip in microseconds; 0 when not known. */
  readonly rttUs: number;
  /** Whether it should be replaced soon, because losses have spoilt what the engine knows of it. */
  readonly worn: boolean;
  /** Whether the leader wanted a token first (Retry), as far as the engine can tell. */
  readonly retried: boolean;
  /** Streams that may be opened now; -1 when the engine cannot tell. */
  readonly streamsLeft: number;
  /** Counts the datagrams that came; -1 when the engine cannot tell. May ask the engine. */
  readonly heard: number;
  /**
   * Opens a stream, writes all of `bytes`, ends it and puts it on the wire, or has it next in line
   * for that (WAITING). Answers the stream's number, or BLOCKED (no stream or window granted now:
   * nothing was written), CLOSED, or TOO_LARGE (this leader would never take so many bytes on one
   * stream). It is in line for `ttlMs` at most; when not given, for as long as
   * the engine lets a copy wait.
   */
  send(bytes: Uint8Array, ttlMs?: number): number;
  /** What became of a stream that `send` answered; once its end was told, forgotten. */
  streamResult(stream: number): StreamResult;
  /**
   * When the copy that `fate` told of last went on the wire, where it had to wait, and when it came
   * to the end that was told, `Clock.nowNs`; 0 when that is told at once.
   */
  readonly sentNs: number;
  readonly endNs: number;
  /** Whether the engine keeps the connection from going idle by itself. */
  readonly keepsAlive: boolean;
  /** Makes the other side answer, and so keeps the connection from going idle. */
  ping(): void;
  /** Closes with application code 0. No event follows. */
  close(): void;
}

export interface ConnectionEvents {
  /** Something arrived: the handshake, credit or acknowledgements may have moved on. */
  progress(): void;
  /** The connection is dead. Told at most once, perhaps within a call of `send` or `ping`. */
  ended(cause: CloseCause): void;
}

/** What an engine gave up so far; what one has no such thing of stays 0. */
export interface Losses {
  /** News of fronts' copies that nobody asked for within a second, and those without room. */
  readonly outcomesExpired: number;
  readonly outcomesEvicted: number;
  /** Records of what became of copies and connections for which there was no room. */
  readonly recordsLost: number;
  /** Datagrams for which there was no room, and those that the system would not send. */
  readonly datagramsDropped: number;
  readonly datagramsRefused: number;
  /** Pieces of work that a bug ended, most of them with the connection that they were for. */
  readonly panics: number;
}

export const NO_LOSSES: Losses = {
  outcomesExpired: 0,
  outcomesEvicted: 0,
  recordsLost: 0,
  datagramsDropped: 0,
  datagramsRefused: 0,
  panics: 0,
};

export interface Transport {
  /** Plain numbers, which no metric shows. */
  readonly counters: Readonly<Record<string, number>>;
  /** @throws Error when no socket can be bound */
  start(): Promise<void>;
  /**
   * Connections begun from now on show this identity; those that are open keep theirs.
   *
   * @throws Error when it makes no certificate; the one before stays
   */
  useIdentity(identity: Identity): void;
  /**
   * Has all that happened so far told now, where the engine would have told it a little later; what
   * fronts sent is adopted before. Not to be called while something is told.
   */
  flushEvents?(): void;
  /** What metrics show of it; none without. */
  losses?(): Losses;
  /** Closes every connection and socket. */
  stop(): Promise<void>;
  /** Begins a connection; null when it cannot even begin (no such address, no socket). */
  connect(address: string, events: ConnectionEvents): EngineConnection | null;
}
