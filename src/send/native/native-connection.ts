/**
 * One connection of the native engine, as the sender uses it.
 *
 * Note: the thread that holds the drive token (`native/src/quic/peer.rs`) does the work of the
 * connection, so a delivery may be left to the I/O thread, or queued in the engine for credit; an
 * event says when it is on the wire. The engine keeps connections alive, except to leaders with a
 * short idle timeout, and what waits in order of its rank. Ingress threads may send over the
 * connection too.
 *
 * Hot path: `send` is one call into Rust.
 */

import type { Packet } from "../../core/flow.ts";
import { CLOSE_CAUSE, type NativeSending, PEER_STATS } from "../../native/contract.ts";
import {
  BLOCKED,
  CLOSED,
  type CloseCause,
  type ConnectionEvents,
  type DeliveryResult,
  type EngineConnection,
  NO_OFFER,
  SATURATED,
  TOO_LARGE,
} from "../transport.ts";
import { accountNumber } from "./account-number.ts";

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

/** Written by `peerStats`; used by one thread only, and not across calls. */
const STATS = new Float64Array(PEER_STATS.length);
const STAT_STATE = PEER_STATS.indexOf("state");
const STAT_RECEIVED = PEER_STATS.indexOf("received");
const STAT_STREAMS_LEFT = PEER_STATS.indexOf("streamsLeft");

export interface Engine {
  readonly native: NativeSending;
  readonly handle: number;
  /** Returns a number for a delivery that no other has meanwhile. */
  readonly nextNumber: () => number;
}

export class NativeConnection implements EngineConnection {
  established = false;
  admitted = false;
  rttUs = 0;
  readonly isDegraded = false;
  retried = false;
  readonly keepsAlive = true;
  waits = false;
  streamBytesMax = 0;
  idleTimeoutMs = Number.POSITIVE_INFINITY;
  over = false;
  /** Whether `progress` must run after the current batch of records. */
  touched = false;
  readonly peer: number;
  readonly #native: NativeSending;
  readonly #engine: number;
  readonly #nextNumber: () => number;
  readonly #events: ConnectionEvents;
  readonly #delivery: Uint32Array;
  readonly #ttlMs: number;

  constructor(engine: Engine, peer: number, deliveryTtlMs: number, events: ConnectionEvents) {
    this.#native = engine.native;
    this.#engine = engine.handle;
    this.peer = peer;
    this.#ttlMs = deliveryTtlMs;
    this.#events = events;
    this.#delivery = Uint32Array.of(peer, 0);
    this.#nextNumber = engine.nextNumber;
  }

  send(bytes: Uint8Array, ttlMs = this.#ttlMs, offer = NO_OFFER): number {
    if (this.over) return CLOSED;
    if (!this.admitted) return BLOCKED;
    if (bytes.length === 0 || bytes.length > this.streamBytesMax) return TOO_LARGE;
    const number = this.#nextNumber();
    this.#delivery[1] = number;
    const status = this.#native.txSend(
      this.#engine,
      this.#delivery,
      bytes,
      number,
      ttlMs,
      accountNumber(offer.account),
      offer.offeredLamports,
    );
    if (status === 0) return this.#isOpen() ? SATURATED : CLOSED;
    this.waits = status !== ON_WIRE;
    return number;
  }

  /** The engine may have ended the connection already, which an event will say. */
  #isOpen(): boolean {
    return this.#stat(STAT_STATE) === ADMITTED;
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

  ping(): void {
    if (!this.over) this.#native.peerPing(this.#engine, this.peer);
  }

  close(): void {
    if (this.over) return;
    this.over = true;
    this.#native.peerClose(this.#engine, this.peer, 0);
  }

  /** What became of a delivery, at `atNs`. */
  result(delivery: number, result: DeliveryResult, atNs: number): void {
    if (!this.over) this.#events.result(delivery, result, atNs);
  }

  /** Another thread sent this packet. */
  sentElsewhere(packet: Packet, delivery: number, sentNs: number, waits: boolean): void {
    this.#events.sentElsewhere(packet, delivery, sentNs, waits);
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
