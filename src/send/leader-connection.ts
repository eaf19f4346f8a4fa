/** One connection to a leader. Hot path: `send`. */

import { NS_PER_MS } from "../core/clock.ts";
import { DeliveryTable } from "./delivery-table.ts";
import { CLOSED, type EngineConnection, type Offer } from "./transport.ts";

/** Where a leader's idle timeout is short, it is pinged twice within that. */
const PING_SHARE = 0.4;
/** No leader is pinged more often, whatever it announces. */
const PING_MS_MIN = 400;

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
  /** Those that its engine has. */
  readonly deliveries: DeliveryTable;
  #lastSentNs: number;

  /** At most `inFlightMax` deliveries on the wire, and `queuedMax` more in the engine. */
  constructor(attemptNs: number, inFlightMax: number, queuedMax = 0) {
    this.attemptNs = attemptNs;
    this.#lastSentNs = attemptNs;
    this.deliveries = new DeliveryTable(inFlightMax, inFlightMax + queuedMax);
  }

  /** As `EngineConnection.send`. */
  send(bytes: Uint8Array, nowNs: number, ttlMs?: number, offer?: Offer): number {
    if (this.engineConnection === null || this.over) return CLOSED;
    const number = this.engineConnection.send(bytes, ttlMs, offer);
    if (number >= 0) this.carries(bytes.length, nowNs);
    return number;
  }

  /** A transaction of this size was sent over it. */
  carries(size: number, nowNs: number): void {
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

  /** Pings after `periodNs` without traffic, or sooner where the leader's idle timeout is short. */
  keepAlive(nowNs: number, periodNs: number): void {
    const { engineConnection } = this;
    if (engineConnection?.established !== true) return;
    if (nowNs - this.#lastSentNs < this.#pingNs(periodNs)) return;
    this.#lastSentNs = nowNs;
    engineConnection.ping();
  }

  /** Milliseconds until `keepAlive` pings; infinite where the engine keeps it alive. */
  nextPingMs(nowNs: number, periodNs: number): number {
    return (this.#lastSentNs + this.#pingNs(periodNs) - nowNs) / NS_PER_MS;
  }

  #pingNs(periodNs: number): number {
    if (this.engineConnection === null) return Number.POSITIVE_INFINITY;
    const { idleTimeoutMs, keepsAlive } = this.engineConnection;
    const shortNs = Math.max(PING_MS_MIN, PING_SHARE * idleTimeoutMs) * NS_PER_MS;
    if (shortNs < periodNs) return shortNs;
    return keepsAlive ? Number.POSITIVE_INFINITY : periodNs;
  }

  /** Deliveries without a result. */
  get pending(): number {
    return this.deliveries.onWire + this.deliveries.waiting;
  }
}
