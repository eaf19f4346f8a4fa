/**
 * One connection of the native engine, as the sender uses it.
 *
 * Note: the thread that holds the drive token (`native/src/quic/peer.rs`) does the work of the
 * connection, so a delivery may be left to the I/O thread, or queued in the engine for credit.
 * `send` then sets the stream result to QUEUED until its event arrives.
 * The engine keeps connections alive, and what waits in order of its rank.
 *
 * Where ingress threads also send over the connection, all threads allocate stream numbers from one
 * cell in shared memory, and sends of ingress threads are recorded here afterwards (`recordSend`).
 *
 * Hot path: `send` is one call into Rust and one array entry.
 */

import { CLOSE_CAUSE, type NativeSending, PEER_STATS } from "../../native/contract.ts";
import { NATIVE_DELIVERIES_IN_FLIGHT_MAX } from "../limits.ts";
import {
  BLOCKED,
  CLOSED,
  type CloseCause,
  type ConnectionEvents,
  type EngineConnection,
  IN_FLIGHT,
  NO_OFFER,
  QUEUED,
  SATURATED,
  type SharedConnection,
  STOPPED,
  type StreamResult,
  TOO_LARGE,
} from "../transport.ts";
import { accountNumber } from "./account-number.ts";
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
/** The state of one that accepts deliveries: `PeerState` of `native/src/quic/delivery.rs`. */
const ADMITTED = 3;
/** `cell` of a connection that ingress threads cannot use. */
const NO_CELL = -1;

/** Written by `peerStats`; used by one thread only, and not across calls. */
const STATS = new Float64Array(PEER_STATS.length);
const STAT_STATE = PEER_STATS.indexOf("state");
const STAT_QUEUED = PEER_STATS.indexOf("queued");
const STAT_RECEIVED = PEER_STATS.indexOf("received");
const STAT_STREAMS_LEFT = PEER_STATS.indexOf("streamsLeft");

export interface Engine {
  readonly native: NativeSending;
  readonly handle: number;
  /** Through which ingress threads share the connections; null: there are none. */
  readonly targetTable: SharedTargetTable | null;
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
  readonly #events: ConnectionEvents;
  readonly #streamResults: StreamResults;
  readonly unqueued: number[] = [];
  readonly #delivery: Uint32Array;
  readonly #ttlMs: number;
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
    this.#events = events;
    this.#delivery = Uint32Array.of(peer, 0);
    this.cell = engine.targetTable?.allocateCell() ?? NO_CELL;
    const isShared = this.cell !== NO_CELL;
    this.shared = isShared ? this : null;
    this.#targetTable = isShared ? engine.targetTable : null;
    this.#streamResults = new StreamResults(NATIVE_DELIVERIES_IN_FLIGHT_MAX + 2 * queuePerLeader);
  }

  send(bytes: Uint8Array, ttlMs = this.#ttlMs, offer = NO_OFFER): number {
    if (this.over) return CLOSED;
    if (!this.admitted) return BLOCKED;
    if (bytes.length === 0 || bytes.length > this.streamBytesMax) return TOO_LARGE;
    // The tag identifies the stream in the records.
    const stream = this.#nextStream();
    this.#delivery[1] = stream;
    const status = this.#native.txSend(
      this.#engine,
      this.#delivery,
      bytes,
      stream,
      ttlMs,
      accountNumber(offer.account),
      offer.offeredLamports,
    );
    if (status === 0) return this.#isOpen() ? SATURATED : CLOSED;
    this.#streamResults.open(stream, status === ON_WIRE ? IN_FLIGHT : QUEUED);
    return stream;
  }

  /** The engine may have ended the connection already, which an event will say. */
  #isOpen(): boolean {
    return this.#stat(STAT_STATE) === ADMITTED;
  }

  #nextStream(): number {
    if (this.#targetTable !== null) return this.#targetTable.nextStream(this.cell);
    this.#streams = (this.#streams + 1) >>> 0 || 1;
    return this.#streams;
  }

  recordSend(stream: number, isQueued: boolean): void {
    this.#streamResults.open(stream, isQueued ? QUEUED : IN_FLIGHT);
  }

  get isIdle(): boolean {
    return this.streamsLeft > 0 && STATS[STAT_QUEUED] === 0;
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

  /** Outcome of a delivery. A stream without an entry was rejected immediately. */
  recordResult(stream: number, streamResult: StreamResult, atNs: number): void {
    const before = this.#streamResults.of(stream);
    if (before < 0) return;
    if (before === QUEUED && streamResult !== QUEUED) this.unqueued.push(stream);
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
