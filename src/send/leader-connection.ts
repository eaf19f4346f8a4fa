/**
 * One connection to a leader, with the deliveries that its engine has. Hot path: `send`,
 * `collectResults`.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { InFlight, type InFlightDelivery } from "./in-flight.ts";
import {
  CLOSED,
  DROPPED,
  type EngineConnection,
  IN_FLIGHT,
  type Offer,
  QUEUED,
  type StreamResult,
} from "./transport.ts";

export class LeaderConnection {
  /** null until `connect` of the transport has returned. */
  engineConnection: EngineConnection | null = null;
  readonly attemptNs: number;
  /** When the handshake completed; 0: not yet. */
  establishedNs = 0;
  /** When it began to accept deliveries; 0: not yet. */
  liveNs = 0;
  /** When it stopped accepting deliveries; 0: it still does. */
  retiredNs = 0;
  /** Opened with a previous identity of this edge. */
  outdated = false;
  /** Ended or closed; it receives no further events. */
  over = false;
  /** Whether it carried any delivery. */
  carried = false;
  bytesMax = 0;
  /** On the wire. */
  readonly inFlight: InFlight;
  /** Queued in the engine, by stream, in the order in which they were given to it. */
  readonly #waiting = new Map<number, InFlightDelivery>();
  readonly #waitingMax: number;
  #lastSentNs: number;

  /** At most `inFlightMax` deliveries on the wire, and `queuedMax` more in the engine. */
  constructor(attemptNs: number, inFlightMax: number, queuedMax = 0) {
    this.attemptNs = attemptNs;
    this.#lastSentNs = attemptNs;
    this.inFlight = new InFlight(inFlightMax);
    this.#waitingMax = inFlightMax + queuedMax;
  }

  /** As `EngineConnection.send`. */
  send(bytes: Uint8Array, nowNs: number, ttlMs?: number, offer?: Offer): number {
    if (this.engineConnection === null || this.over) return CLOSED;
    const stream = this.engineConnection.send(bytes, ttlMs, offer);
    if (stream >= 0) this.#carries(bytes.length, nowNs);
    return stream;
  }

  /** Records a delivery that an ingress thread sent. */
  recordSend(stream: number, size: number, isQueued: boolean, sentNs: number): void {
    this.#carries(size, sentNs);
    this.engineConnection?.shared?.recordSend(stream, isQueued);
  }

  #carries(size: number, nowNs: number): void {
    this.#lastSentNs = nowNs;
    this.carried = true;
    if (size > this.bytesMax) this.bytesMax = size;
  }

  /** Closes it; false when it was already over. The caller must end its deliveries. */
  shut(): boolean {
    if (this.over) return false;
    this.over = true;
    this.engineConnection?.close();
    return true;
  }

  /** Pings after `periodNs` without traffic. */
  keepAlive(nowNs: number, periodNs: number): void {
    const { engineConnection } = this;
    if (engineConnection?.established !== true || engineConnection.keepsAlive) return;
    if (nowNs - this.#lastSentNs < periodNs) return;
    this.#lastSentNs = nowNs;
    engineConnection.ping();
  }

  /** Milliseconds until `keepAlive` pings; infinite where the engine keeps it alive. */
  nextPingMs(nowNs: number, periodNs: number): number {
    if (this.engineConnection?.keepsAlive !== false) return Number.POSITIVE_INFINITY;
    return (this.#lastSentNs + periodNs - nowNs) / NS_PER_MS;
  }

  /** Whether a sent delivery is not on the wire yet. */
  isQueued(stream: number): boolean {
    return this.engineConnection?.streamResult(stream) === QUEUED;
  }

  /** Deliveries queued in the engine. */
  get queued(): number {
    return this.#waiting.size;
  }

  /** Deliveries without a result. */
  get pending(): number {
    return this.inFlight.size + this.#waiting.size;
  }

  /**
   * Adds a delivery: queued in the engine while its `sentNs` is 0, otherwise on the wire. At the
   * bound the oldest is removed, and passed to `overflowed`.
   */
  add(delivery: InFlightDelivery, overflowed: (delivery: InFlightDelivery) => void): void {
    if (delivery.sentNs === 0) {
      this.#waiting.set(delivery.stream, { ...delivery });
      if (this.#waiting.size <= this.#waitingMax) return;
      for (const [stream, oldest] of this.#waiting) {
        this.#waiting.delete(stream);
        overflowed(oldest);
        break;
      }
      return;
    }
    if (this.inFlight.push(delivery)) return;
    const oldest = this.inFlight.oldest();
    if (oldest !== null) overflowed(oldest);
    this.inFlight.drop();
    this.inFlight.push(delivery);
  }

  /**
   * Reports queued deliveries that are on the wire now or were dropped, in the order in which the
   * engine did so, and then finished deliveries from the head of the ring, oldest first.
   */
  collectResults(
    nowNs: number,
    onWire: (delivery: InFlightDelivery) => void,
    done: (delivery: InFlightDelivery, streamResult: StreamResult) => void,
    overflowed: (delivery: InFlightDelivery) => void,
  ): void {
    const engineConnection = this.engineConnection;
    if (engineConnection === null) return;
    const { unqueued } = engineConnection;
    for (const stream of unqueued) {
      const delivery = this.#waiting.get(stream);
      if (delivery === undefined) continue;
      this.#waiting.delete(stream);
      const streamResult = learn(delivery, engineConnection, nowNs, onWire);
      if (streamResult === IN_FLIGHT) this.add(delivery, overflowed);
      else done(delivery, streamResult);
    }
    unqueued.length = 0;
    const { inFlight } = this;
    for (let row = inFlight.oldest(); row !== null; row = inFlight.oldest()) {
      const streamResult = learn(row, engineConnection, nowNs, onWire);
      if (streamResult === IN_FLIGHT) return;
      done(row, streamResult);
      inFlight.drop();
    }
  }

  /** Removes all deliveries; those that the engine has a result of keep it. */
  failAll(
    nowNs: number,
    onWire: (delivery: InFlightDelivery) => void,
    done: (delivery: InFlightDelivery, streamResult: StreamResult) => void,
    failed: (delivery: InFlightDelivery) => void,
  ): void {
    const { engineConnection, inFlight } = this;
    const end = (row: InFlightDelivery): void => {
      const streamResult =
        engineConnection === null ? QUEUED : learn(row, engineConnection, nowNs, onWire);
      if (streamResult === QUEUED || streamResult === IN_FLIGHT) failed(row);
      else done(row, streamResult);
    };
    for (let row = inFlight.oldest(); row !== null; row = inFlight.oldest()) {
      end(row);
      inFlight.drop();
    }
    for (const delivery of this.#waiting.values()) end(delivery);
    this.#waiting.clear();
  }
}

/** Queries the result of a delivery. */
function learn(
  delivery: InFlightDelivery,
  engineConnection: EngineConnection,
  nowNs: number,
  onWire: (delivery: InFlightDelivery) => void,
): StreamResult {
  const streamResult = engineConnection.streamResult(delivery.stream);
  if (delivery.sentNs === 0 && streamResult !== QUEUED && streamResult < DROPPED) {
    delivery.sentNs = engineConnection.sentNs || nowNs;
    onWire(delivery);
  }
  delivery.endNs = engineConnection.endNs;
  return streamResult;
}
