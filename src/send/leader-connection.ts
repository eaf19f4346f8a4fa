/**
 * One connection to a leader, with the deliveries that its engine has and that have no result yet:
 * those on the wire, and those that wait in the engine. Both are in order and bounded; at the bound
 * the oldest makes room. Rows are reused, so the hot path allocates none.
 *
 * Hot path: everything about deliveries.
 */

import { NS_PER_MS } from "../core/clock.ts";
import type { Target } from "../core/flow.ts";
import { CLOSED, type EngineConnection, type Offer } from "./transport.ts";

/** A delivery that an engine has; valid until it is removed. */
export interface Delivery {
  /** As `EngineConnection.send` returned it. */
  number: number;
  packetId: number;
  /** The leader that receives it, and the slot that it was sent for. */
  target: Target;
  /** When it was put on the wire; 0: it waits in the engine. */
  sentNs: number;
  /** As `Outcome.connectionAgeMs`. */
  ageMs: number;
  /** As `Outcome.resend`. */
  resend: number;
}

const NO_TARGET: Target = { identity: "", address: "", slot: 0 };

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
  /** By number, the oldest first. */
  readonly #onWire = new Map<number, Delivery>();
  readonly #waiting = new Map<number, Delivery>();
  readonly #onWireMax: number;
  readonly #waitingMax: number;
  readonly #spare: Delivery[] = [];
  #lastSentNs: number;

  /** At most `inFlightMax` deliveries on the wire, and `queuedMax` more in the engine. */
  constructor(attemptNs: number, inFlightMax: number, queuedMax = 0) {
    this.attemptNs = attemptNs;
    this.#lastSentNs = attemptNs;
    this.#onWireMax = inFlightMax;
    this.#waitingMax = inFlightMax + queuedMax;
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

  /** Deliveries on the wire. */
  get inFlight(): number {
    return this.#onWire.size;
  }

  /** Deliveries that wait in the engine. */
  get queued(): number {
    return this.#waiting.size;
  }

  /** Deliveries without a result. */
  get pending(): number {
    return this.#onWire.size + this.#waiting.size;
  }

  /**
   * Adds a delivery, which waits in the engine while its `sentNs` is 0. At the bound the oldest is
   * removed, and passed to `overflowed`.
   */
  add(
    number: number,
    packetId: number,
    target: Target,
    sentNs: number,
    ageMs: number,
    resend: number,
    overflowed: (delivery: Delivery) => void,
  ): void {
    // Numbers start as fractions: see core/packet.ts.
    const delivery = this.#spare.pop() ?? {
      number: 0,
      packetId: 0.5,
      target: NO_TARGET,
      sentNs: 0.5,
      ageMs: 0.5,
      resend: 0,
    };
    delivery.number = number;
    delivery.packetId = packetId;
    delivery.target = target;
    delivery.sentNs = sentNs;
    delivery.ageMs = ageMs;
    delivery.resend = resend;
    this.#place(delivery, overflowed);
  }

  /** The delivery of that number; null when it has its result, or is unknown. */
  find(number: number): Delivery | null {
    return this.#onWire.get(number) ?? this.#waiting.get(number) ?? null;
  }

  /** A delivery that waited is on the wire now; as `add`. */
  putOnWire(delivery: Delivery, sentNs: number, overflowed: (delivery: Delivery) => void): void {
    this.#waiting.delete(delivery.number);
    delivery.sentNs = sentNs;
    this.#place(delivery, overflowed);
  }

  /** Forgets a delivery that has its result. */
  remove(delivery: Delivery): void {
    if (!this.#onWire.delete(delivery.number)) this.#waiting.delete(delivery.number);
    delivery.target = NO_TARGET;
    this.#spare.push(delivery);
  }

  /** Removes all deliveries, and reports each: first those on the wire, the oldest first. */
  failAll(failed: (delivery: Delivery) => void): void {
    for (const deliveries of [this.#onWire, this.#waiting]) {
      for (const delivery of deliveries.values()) {
        failed(delivery);
        this.remove(delivery);
      }
    }
  }

  #place(delivery: Delivery, overflowed: (delivery: Delivery) => void): void {
    const isWaiting = delivery.sentNs === 0;
    const deliveries = isWaiting ? this.#waiting : this.#onWire;
    deliveries.set(delivery.number, delivery);
    if (deliveries.size <= (isWaiting ? this.#waitingMax : this.#onWireMax)) return;
    for (const oldest of deliveries.values()) {
      overflowed(oldest);
      this.remove(oldest);
      return;
    }
  }
}
