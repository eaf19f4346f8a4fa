/**
 * One connection of a peer, with the copies that it carries. Hot path: `send`, `collectResults`.
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
  /** null until the transport has answered. */
  engineConnection: EngineConnection | null = null;
  readonly attemptNs: number;
  /** Since when the handshake is done; 0: it is not. */
  establishedNs = 0;
  /** Since when it takes copies; 0: not yet. */
  liveNs = 0;
  /** Since when it takes none any more; 0: it does. */
  retiredNs = 0;
  /** Made with an identity that is no longer this edge's. */
  outdated = false;
  /** Ended or closed; nothing more is heard of it. */
  over = false;
  /** Whether it took any copy, and the largest one. */
  carried = false;
  bytesMax = 0;
  readonly inFlight: InFlight;
  #spokeNs: number;

  constructor(attemptNs: number, inFlightMax: number) {
    this.attemptNs = attemptNs;
    this.#spokeNs = attemptNs;
    this.inFlight = new InFlight(inFlightMax);
  }

  /** As `Connection.send`. */
  send(bytes: Uint8Array, nowNs: number, ttlMs?: number): number {
    if (this.engineConnection === null || this.over) return CLOSED;
    const stream = this.engineConnection.send(bytes, ttlMs);
    if (stream >= 0) this.#carries(bytes.length, nowNs);
    return stream;
  }

  /** A front sent a copy over it. Answers as `SharedConnection.adopt`. */
  recordSend(stream: number, size: number, isQueued: boolean, sentNs: number): boolean {
    this.#carries(size, sentNs);
    return this.engineConnection?.shared?.recordSend(stream, isQueued) ?? false;
  }

  #carries(size: number, nowNs: number): void {
    this.#spokeNs = nowNs;
    this.carried = true;
    if (size > this.bytesMax) this.bytesMax = size;
  }

  /** Closes it; false when it was over already. What it carried is the caller's to end. */
  shut(): boolean {
    if (this.over) return false;
    this.over = true;
    this.engineConnection?.close();
    return true;
  }

  /** Pings when the connection said nothing for `periodNs`. */
  keepAlive(nowNs: number, periodNs: number): void {
    const { engineConnection } = this;
    if (engineConnection?.established !== true || engineConnection.keepsAlive) return;
    if (nowNs - this.#spokeNs < periodNs) return;
    this.#spokeNs = nowNs;
    engineConnection.ping();
  }

  /** In how many milliseconds `keepAlive` pings; never where the engine does that. */
  nextPingMs(nowNs: number, periodNs: number): number {
    if (this.engineConnection?.keepsAlive !== false) return Number.POSITIVE_INFINITY;
    return (this.#spokeNs + periodNs - nowNs) / NS_PER_MS;
  }

  /** Whether a copy that `send` took is not on the wire yet. */
  isQueued(stream: number): boolean {
    return this.engineConnection?.streamResult(stream) === QUEUED;
  }

  /**
   * Takes what is done from the head of those in flight, oldest first. A copy that had to wait is
   * told of once it is on the wire, whatever the older ones wait for.
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

  /** Takes all that is in flight: what has its end, behind one that has none, keeps it. */
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

/** Asks what became of a copy, and keeps an end, because the connection tells it once. */
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
