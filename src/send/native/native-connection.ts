/**
 * One connection of the native engine, as the sender uses it.
 *
 * Note: the thread that holds the drive token (`native/src/quic/peer.rs`) does the work of the
 * connection, so a delivery may be left to the I/O thread, or queued in the engine for credit.
 * `send` then sets the stream result to QUEUED until its event arrives.
 * The engine keeps connections alive.
 *
 * Where ingress threads also send over the connection, all threads allocate stream numbers from one
 * cell in shared memory, and sends of ingress threads are recorded here afterwards (`recordSend`).
 *
 * Hot path: `send` is one call into Rust and one array entry.
 */

import { CLOSE_CAUSE, type NativeSending, PEER_STATS } from "../../native/contract.ts";
import {
  DELIVERIES_IN_FLIGHT_MAX,
  INGRESS_TX_MIN,
  NATIVE_DELIVERIES_IN_FLIGHT_MAX,
  NATIVE_DELIVERIES_QUEUED_MAX,
  TARGET_BACKLOG_MAX,
} from "../limits.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  type CloseCause,
  type ConnectionEvents,
  type EngineConnection,
  IN_FLIGHT,
  QUEUED,
  type SharedConnection,
  STOPPED,
  type StreamResult,
  TOO_LARGE,
} from "../transport.ts";
import { DrainRate } from "./drain-rate.ts";
import type { EarlyOutcomes } from "./early-outcomes.ts";
import type { SharedTargetTable } from "./shared-target-table.ts";
import { StreamResults } from "./stream-results.ts";

/** Which side ended a connection. */
const CLOSE_CAUSE_KINDS: Readonly<Record<keyof typeof CLOSE_CAUSE, CloseCause["kind"]>> = {
  local: "local",
  application: "app",
  transport: "transport",
  protocol: "local",
  timedOut: "silence",
  reset: "silence",
  version: "local",
  admissionTimeout: "silence",
  internal: "local",
};
/** The same by the cause's number. */
const KIND_BY_CAUSE: ReadonlyMap<number, CloseCause["kind"]> = new Map(
  (Object.keys(CLOSE_CAUSE) as (keyof typeof CLOSE_CAUSE)[]).map((cause) => [
    CLOSE_CAUSE[cause],
    CLOSE_CAUSE_KINDS[cause],
  ]),
);

/** `txSend`'s status for one delivery that is on the wire. */
const ON_WIRE = 1;
/** `cell` of a connection that ingress threads cannot use. */
const NO_CELL = -1;

/** Written by `peerStats`; used by one thread only, and not across calls. */
const STATS = new Float64Array(PEER_STATS.length);
const STAT_QUEUED = PEER_STATS.indexOf("queued");
const STAT_RECEIVED = PEER_STATS.indexOf("received");
const STAT_STREAMS_LEFT = PEER_STATS.indexOf("streamsLeft");

export interface Engine {
  readonly native: NativeSending;
  readonly handle: number;
  /** State shared with ingress threads; null: none. */
  readonly ingressThreads: {
    readonly targetTable: SharedTargetTable;
    readonly early: EarlyOutcomes;
  } | null;
}

/** Limits of one connection. */
export interface ConnectionBounds {
  readonly queuePerLeader: number;
  readonly deliveryTtlMs: number;
}

export class NativeConnection implements EngineConnection, SharedConnection {
  readonly shared: SharedConnection | null;
  established = false;
  admitted = false;
  rttUs = 0;
  readonly isDegraded = false;
  retried = false;
  readonly keepsAlive = true;
  sentNs = 0;
  endNs = 0;
  /** Maximum bytes that this leader accepts on one stream. */
  streamBytesMax = 0;
  over = false;
  /** Whether `progress` must run after the current batch of records. */
  touched = false;
  readonly peer: number;
  readonly cell: number;
  readonly #native: NativeSending;
  readonly #engine: number;
  readonly #targetTable: SharedTargetTable | null;
  readonly #early: EarlyOutcomes | null;
  readonly #events: ConnectionEvents;
  readonly #streamResults: StreamResults;
  /** Deliveries in the engine that are not on the wire yet. */
  #queued = 0;
  readonly #delivery: Uint32Array;
  readonly #ttlMs: number;
  /** The engine's own queue limit: it rejects what exceeds it, and that event would return here. */
  readonly #queueMax: number;
  readonly #drainRate = new DrainRate();
  /** Deliveries that may be queued in the engine, including those of other threads. */
  #queuedMax: number;
  #streams = 0;

  constructor(
    engine: Engine,
    peer: number,
    { deliveryTtlMs, queuePerLeader }: ConnectionBounds,
    events: ConnectionEvents,
  ) {
    this.#native = engine.native;
    this.#engine = engine.handle;
    this.peer = peer;
    this.#ttlMs = deliveryTtlMs;
    this.#queueMax = queuePerLeader;
    this.#queuedMax = Math.min(NATIVE_DELIVERIES_QUEUED_MAX, queuePerLeader);
    this.#events = events;
    this.#delivery = Uint32Array.of(peer, 0);
    this.cell = engine.ingressThreads?.targetTable.allocateCell() ?? NO_CELL;
    const isShared = this.cell !== NO_CELL;
    this.shared = isShared ? this : null;
    this.#targetTable = isShared ? (engine.ingressThreads?.targetTable ?? null) : null;
    this.#early = isShared ? (engine.ingressThreads?.early ?? null) : null;
    this.#streamResults = new StreamResults(
      isShared ? NATIVE_DELIVERIES_IN_FLIGHT_MAX : DELIVERIES_IN_FLIGHT_MAX,
    );
  }

  send(bytes: Uint8Array, ttlMs = this.#ttlMs): number {
    if (this.over) return CLOSED;
    if (!this.admitted) return BLOCKED;
    if (bytes.length === 0 || bytes.length > this.streamBytesMax) return TOO_LARGE;
    // The engine queues in arrival order; the leader's queue here sends the highest priority first.
    if (this.#isBusy()) return BLOCKED;
    // The tag identifies the stream in the records.
    const stream = this.#nextStream();
    this.#delivery[1] = stream;
    const status = this.#native.txSend(this.#engine, this.#delivery, bytes, stream, ttlMs);
    if (status === 0) return BLOCKED;
    if (status !== ON_WIRE) this.#queued += 1;
    this.#streamResults.open(stream, status === ON_WIRE ? IN_FLIGHT : QUEUED);
    return stream;
  }

  #nextStream(): number {
    if (this.#targetTable !== null) return this.#targetTable.nextStream(this.cell);
    this.#streams = (this.#streams + 1) >>> 0 || 1;
    return this.#streams;
  }

  recordSend(stream: number, isQueued: boolean): boolean {
    if (isQueued) this.#queued += 1;
    this.#streamResults.open(stream, isQueued ? QUEUED : IN_FLIGHT);
    const outcome = this.#early?.take(this.cell, stream) ?? null;
    if (outcome === null) return false;
    if (outcome.sentNs !== 0) this.recordResult(stream, IN_FLIGHT, outcome.sentNs, INGRESS_TX_MIN);
    if (outcome.streamResult !== IN_FLIGHT)
      this.recordResult(stream, outcome.streamResult, outcome.endNs, INGRESS_TX_MIN);
    return true;
  }

  isBacklogged(nowNs: number): boolean {
    // Other threads do not check per delivery, so half of the queue is reserved for theirs.
    const most = Math.min(this.#drainRate.backlogMax(nowNs), this.#queueMax / 2);
    const backlog = Math.floor(Math.max(TARGET_BACKLOG_MAX, most)) + 1;
    const isBacklogged = this.#hasQueued(Math.min(backlog, this.#queueMax));
    const ownMax = Math.max(NATIVE_DELIVERIES_QUEUED_MAX, isBacklogged ? 0 : most);
    this.#queuedMax = Math.min(ownMax, this.#queueMax);
    return isBacklogged;
  }

  get streamsLeft(): number {
    return this.admitted ? this.#stat(STAT_STREAMS_LEFT) : 0;
  }

  get datagramsReceived(): number {
    return this.#stat(STAT_RECEIVED);
  }

  /** -1 where the connection is over. */
  #stat(which: number): number {
    if (this.over) return -1;
    const count = this.#native.peerStats(this.#engine, this.peer, STATS);
    return which < count ? (STATS[which] ?? -1) : -1;
  }

  #isBusy(): boolean {
    return this.#hasQueued(this.#queuedMax);
  }

  /** Records can be lost, so the engine is asked when the count seems this high. */
  #hasQueued(count: number): boolean {
    if (this.#queued < count) return false;
    this.#queued = Math.max(0, this.#stat(STAT_QUEUED));
    return this.#queued >= count;
  }

  streamResult(stream: number): StreamResult {
    const streamResult = this.#streamResults.of(stream);
    this.sentNs = this.#streamResults.sentNsOf(stream);
    if (streamResult === IN_FLIGHT || streamResult === QUEUED) return streamResult;
    this.endNs = this.#streamResults.endNsOf(stream);
    this.#streamResults.close(stream);
    return streamResult < 0 ? STOPPED : streamResult;
  }

  ping(): void {
    if (!this.over) this.#native.peerPing(this.#engine, this.peer);
  }

  close(): void {
    if (this.over) return;
    this.over = true;
    this.#native.peerClose(this.#engine, this.peer, 0);
  }

  /**
   * Outcome of a delivery. A stream without an entry was rejected immediately, or an ingress thread
   * sent it and it is not recorded yet: `tx`, the engine's transaction number, distinguishes them.
   */
  recordResult(stream: number, streamResult: StreamResult, atNs: number, tx: number): void {
    const before = this.#streamResults.of(stream);
    if (before < 0) {
      if (tx >= INGRESS_TX_MIN) this.#early?.record(this.cell, stream, streamResult, atNs);
      return;
    }
    if (before === QUEUED && streamResult !== QUEUED) this.#queued = Math.max(0, this.#queued - 1);
    if (streamResult === ACKED) this.#drainRate.record(atNs);
    this.#streamResults.record(stream, streamResult, atNs);
  }

  progress(): void {
    this.touched = false;
    if (!this.over) this.#events.progress();
  }

  /** Reports the results of its deliveries, then its end. */
  end(cause: number, code: number): void {
    this.progress();
    if (this.over) return;
    this.over = true;
    const kind = KIND_BY_CAUSE.get(cause) ?? "local";
    this.#events.ended({ kind, code: kind === "app" || kind === "transport" ? code : 0 });
  }
}
