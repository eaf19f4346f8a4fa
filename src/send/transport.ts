/**
 * The interface between the sender and an engine: connections that accept complete transactions.
 * `portable/transport-quic.ts` and `native/transport-native.ts` implement it; tests use one without
 * a network.
 *
 * Nothing here throws. A connection reports through `ConnectionEvents`; after `ended` it emits no
 * events and accepts nothing.
 *
 * Decision: docs/decisions/0030-two-engines-one-transport.md
 */

import type { Packet } from "../core/flow.ts";
import type { Identity } from "./identity.ts";

/** Why a connection ended. */
export interface CloseCause {
  /**
   * `app`: the leader closed with an application code (Agave's are 1, 2, 4, 5). `transport`: it
   * closed with a QUIC or TLS code. `silence`: the handshake or the idle time ran out on this side,
   * or on the leader's, which reset the connection, or the leader granted no stream in time.
   * `local`: this side closed after an error in the leader's packets or in the engine.
   */
  readonly kind: "app" | "transport" | "silence" | "local";
  /** The code for `app` and `transport`, otherwise 0. */
  readonly code: number;
}

/** Results of `EngineConnection.send` that are not a stream. */
export const BLOCKED = -1;
export const CLOSED = -2;
export const TOO_LARGE = -3;
export const SATURATED = -4;

/** By what an engine with a queue ranks a delivery. */
export type Offer = Pick<Packet, "account" | "offeredLamports">;
/** Of an account without history, and after all that offer something. */
export const NO_OFFER: Offer = { account: "", offeredLamports: 0 };

/**
 * What became of a delivery that `send` accepted: it is on the wire (only where it waited before),
 * acknowledged, stopped by the leader, or never went on the wire: DROPPED + i, where i is the index
 * of the reason in DELIVERY_REASONS.
 */
export const ON_WIRE = 0;
export const ACKED = 1;
export const STOPPED = 2;
export const DROPPED = 16;
export type DeliveryResult = number;

export interface EngineConnection {
  /** The engine's handle, by which other threads send over it; 0 where they cannot. */
  readonly peer: number;
  /** Maximum bytes that this leader accepts on one stream; 0 until it is known. */
  readonly streamBytesMax: number;
  /** The leader's idle timeout in milliseconds; infinite while unknown, and where it has none. */
  readonly idleTimeoutMs: number;
  /** The handshake is complete. */
  readonly established: boolean;
  /** The leader has granted a stream at least once. */
  readonly admitted: boolean;
  /** Smoothed round trip in microseconds; 0 when unknown. */
  readonly rttUs: number;
  /** Whether it should be replaced soon, because losses have distorted the engine's estimates. */
  readonly isDegraded: boolean;
  /** Whether the leader demanded a token first (Retry), as far as the engine knows. */
  readonly retried: boolean;
  /** Streams that may be opened now; -1 when the engine cannot tell. */
  readonly streamsLeft: number;
  /** Count of datagrams received; -1 when the engine cannot tell. May ask the engine. */
  readonly datagramsReceived: number;
  /**
   * Opens a stream, writes all of `bytes`, ends it and puts it on the wire, or queues it in the
   * engine, highest rank first. Returns the number of the delivery, which no other of this
   * connection has meanwhile, or BLOCKED (no stream or window granted now, and this engine has no
   * queue: nothing was written), SATURATED (the engine's queue is full, and nothing in it has a
   * lower rank), CLOSED, or TOO_LARGE (this leader never accepts this many bytes on one stream). It
   * stays queued for at most `ttlMs`; by default for the engine's own limit.
   */
  send(bytes: Uint8Array, ttlMs?: number, offer?: Offer): number;
  /** Whether the delivery that `send` accepted last waits in the engine. */
  readonly waits: boolean;
  /** Whether the engine itself keeps the connection from going idle, at an interval for all. */
  readonly keepsAlive: boolean;
  /** Makes the other side respond, and so keeps the connection from going idle. */
  ping(): void;
  /** Closes with application code 0. Reports the results that are known; no event follows. */
  close(): void;
}

export interface ConnectionEvents {
  /** Data arrived: the handshake, credit or acknowledgements may have progressed. */
  progress(): void;
  /** What became of a delivery, at `atNs`, by its number. Each comes before `ended`. */
  result(delivery: number, result: DeliveryResult, atNs: number): void;
  /**
   * Another thread sent this packet over the connection at `sentNs`, as the delivery of this
   * number; `waits`: it is not known to be on the wire. Called before its results.
   */
  sentElsewhere(packet: Packet, delivery: number, sentNs: number, waits: boolean): void;
  /** The connection ended. Called at most once, possibly within `send` or `ping`. */
  ended(cause: CloseCause): void;
}

/** What an engine lost so far; 0 where it does not apply. */
export interface Losses {
  /** Records of deliveries and connections that were lost for lack of room. */
  readonly recordsLost: number;
  /** Datagrams dropped for lack of room, and those that the system rejected. */
  readonly datagramsDropped: number;
  readonly datagramsRejected: number;
  /** Panics caught in the engine, most of which ended the connection being processed. */
  readonly panics: number;
  /** Deliveries that waited in the engine's queues, and those evicted from full ones. */
  readonly deliveriesQueued: number;
  readonly deliveriesEvicted: number;
}

export const NO_LOSSES: Losses = {
  recordsLost: 0,
  datagramsDropped: 0,
  datagramsRejected: 0,
  panics: 0,
  deliveriesQueued: 0,
  deliveriesEvicted: 0,
};

export interface Transport {
  /** Plain counters that no metric shows. */
  readonly counters: Readonly<Record<string, number>>;
  /** @throws Error when no socket can be bound */
  start(): Promise<void>;
  /**
   * Connections opened from now on use this identity; open ones keep theirs.
   *
   * @throws Error when it makes no certificate; the previous identity stays
   */
  useIdentity(identity: Identity): void;
  /**
   * Reports all events so far now, where the engine would report them slightly later; sends of
   * the engine's threads are recorded before. Must not be called from an event callback.
   */
  flushEvents?(): void;
  /** The landed shares that changed, by account; missing: the engine has no queues. */
  useLandedShares?(changed: ReadonlyMap<string, number>): void;
  /** The engine's losses for metrics; missing: none. */
  losses?(): Losses;
  /** Closes every connection and socket. */
  stop(): Promise<void>;
  /** Calls `sentElsewhere` of the connection with this handle; missing: no other thread sends. */
  recordSend?(peer: number, packet: Packet, delivery: number, sentNs: number, waits: boolean): void;
  /** Opens a connection; null when it cannot start (invalid address, no socket). */
  connect(address: string, events: ConnectionEvents): EngineConnection | null;
}
