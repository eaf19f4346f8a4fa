/**
 * One connection to a leader, with its in-flight deliveries. Hot path: `send`, `collectResults`.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { InFlight, type InFlightDelivery } from "./in-flight.ts";
import {
  CLOSED,
  DROPPED,
  type EngineConnection,
  IN_FLIGHT,
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
  readonly inFlight: InFlight;
  #lastSentNs: number;

  constructor(attemptNs: number, inFlightMax: number) {
    this.attemptNs = attemptNs;
    this.#lastSentNs = attemptNs;
    this.inFlight = new InFlight(inFlightMax);
  }

  /** As `EngineConnection.send`. */
  send(bytes: Uint8Array, nowNs: number, ttlMs?: number): number {
    if (this.engineConnection === null || this.over) return CLOSED;
    const stream = this.engineConnection.send(bytes, ttlMs);
    if (stream >= 0) this.#carries(bytes.length, nowNs);
    return stream;
  }

  /** Records a delivery that an ingress thread sent. Returns as `SharedConnection.recordSend`. */
  recordSend(stream: number, size: number, isQueued: boolean, sentNs: number): boolean {
    this.#carries(size, sentNs);
    return this.engineConnection?.shared?.recordSend(stream, isQueued) ?? false;
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

  /**
   * Removes finished deliveries from the head of the ring, oldest first. A queued delivery is
   * reported as sent once it is on the wire, independent of older deliveries.
   */
  collectResults(
    nowNs: number,
    onWire: (delivery: InFlightDelivery) => void,
    done: (delivery: InFlightDelivery, streamResult: StreamResult) => void,
  ): void {
    const engineConnection = this.engineConnection;
    if (engineConnection === null) return;
    const { inFlight } = this;
    for (let row = inFlight.oldest(); row !== null; row = inFlight.oldest()) {
      const streamResult = learn(row, engineConnection, nowNs, onWire);
      if (streamResult === QUEUED || streamResult === IN_FLIGHT) break;
      done(row, streamResult);
      inFlight.drop();
    }
    for (let row = inFlight.nextUnsent(); row !== null; row = inFlight.nextUnsent()) {
      if (learn(row, engineConnection, nowNs, onWire) === QUEUED) return;
    }
  }

  /** Removes all deliveries; those with a result behind an older one without keep their result. */
  failAll(
    nowNs: number,
    onWire: (delivery: InFlightDelivery) => void,
    done: (delivery: InFlightDelivery, streamResult: StreamResult) => void,
    failed: (delivery: InFlightDelivery) => void,
  ): void {
    const { engineConnection } = this;
    for (let row = this.inFlight.oldest(); row !== null; row = this.inFlight.oldest()) {
      const streamResult =
        engineConnection === null ? QUEUED : learn(row, engineConnection, nowNs, onWire);
      if (streamResult === QUEUED || streamResult === IN_FLIGHT) failed(row);
      else done(row, streamResult);
      this.inFlight.drop();
    }
  }
}

/** Queries the result of a delivery and stores it, because the connection returns it once. */
function learn(
  delivery: InFlightDelivery,
  engineConnection: EngineConnection,
  nowNs: number,
  onWire: (delivery: InFlightDelivery) => void,
): StreamResult {
  if (delivery.streamResult !== IN_FLIGHT) return delivery.streamResult;
  const streamResult = engineConnection.streamResult(delivery.stream);
  if (delivery.sentNs === 0 && streamResult !== QUEUED && streamResult < DROPPED) {
    delivery.sentNs = engineConnection.sentNs || nowNs;
    onWire(delivery);
  }
  if (streamResult === QUEUED || streamResult === IN_FLIGHT) return streamResult;
  delivery.streamResult = streamResult;
  delivery.endNs = engineConnection.endNs;
  return streamResult;
}
