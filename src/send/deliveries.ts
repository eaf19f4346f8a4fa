/**
 * The deliveries to one leader: those queued for credit, and the results of those in flight. Hot
 * path: `trySend`, `reportSent`, `result`, `drain`.
 *
 * A delivery is sent immediately while the queue is empty and the leader has credit. Otherwise it
 * is queued, highest priority first, until its TTL ends; a resend likewise. When the queue is full,
 * the delivery with the lowest priority is dropped. The final state of each delivery is reported
 * exactly once; where the engine's event of it is lost, some seconds late.
 *
 * Note: the native engine has a queue of its own, for all threads, with the same order and the same
 * bounds (`native/src/quic/priority_queue.rs`). With it the queue here holds only what waits for a
 * connection.
 */

import { type Clock, NS_PER_MS, NS_PER_US } from "../core/clock.ts";
import { DELIVERY_REASON_NAMES, type DeliveryReason } from "../core/errors.ts";
import type { Outcome, Packet, Target } from "../core/flow.ts";
import type { Delivery } from "./delivery-table.ts";
import type { LeaderConnection } from "./leader-connection.ts";
import type { LeaderStats } from "./leader-stats.ts";
import { RESENDS_IN_FLIGHT_MAX, UNREPORTED_ON_WIRE_MS, UNREPORTED_WAITING_MS } from "./limits.ts";
import { PriorityQueue, type QueuedDelivery } from "./priority-queue.ts";
import type { SendCounters } from "./send-counters.ts";
import { StreamWindow } from "./stream-window.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  type DeliveryResult,
  DROPPED,
  ON_WIRE,
  SATURATED,
  STOPPED,
  TOO_LARGE,
} from "./transport.ts";

const NONE = -1;

export interface DeliveriesOptions {
  readonly queuePerLeader: number;
  readonly deliveryTtlMs: number;
  /** The share of an account's recent transactions that landed; it changes only with a plan. */
  readonly landedShareOf: (account: string) => number;
}

/** Reports the state of a delivery. */
export type ReportDelivery = (
  packetId: number,
  target: Target,
  kind: Outcome["kind"],
  reason: DeliveryReason | null,
  rttUs: number,
  connectionAgeMs: number,
  resend: number,
  /** When it happened; missing: now. */
  atNs?: number,
) => void;

export interface DeliveriesDeps {
  readonly clock: Clock;
  readonly counters: SendCounters;
  readonly report: ReportDelivery;
}

/** What became of a resend; `refused`: there is no delivery. */
export type ResendResult = "sent" | "queued" | "refused";

/** "accepted", or the reason for the rejection. */
export type TrySendResult =
  | "accepted"
  | "queue_full"
  | "leader_saturated"
  | "stream_too_large"
  | "not_connected";

export class Deliveries {
  /** Statistics of the leader that receives these deliveries. */
  stats: LeaderStats;
  /** Larger transactions are not sent to this leader. */
  bytesMax = Number.POSITIVE_INFINITY;
  readonly window = new StreamWindow();
  readonly #deps: DeliveriesDeps;
  readonly #ttlNs: number;
  readonly #queue: PriorityQueue;
  /** The delivery that was sent last, until it is reported; when it was sent, 0: it waits. */
  #unreported = NONE;
  #sentNs = 0;
  /** Resends that are on the wire, without a result. */
  #resendsOnWire = 0;
  /** Connections were closed because this edge stops. */
  #isCut = false;
  // Created once, so that reporting allocates no closure.
  readonly #lost: (delivery: Delivery) => void;
  readonly #cut: (delivery: Delivery) => void;
  readonly #noStreamCredit: (delivery: QueuedDelivery) => void;
  readonly #expired: (delivery: QueuedDelivery) => void;
  readonly #untracked: (delivery: Delivery) => void;

  constructor(stats: LeaderStats, deps: DeliveriesDeps, options: DeliveriesOptions) {
    this.stats = stats;
    this.#deps = deps;
    this.#ttlNs = options.deliveryTtlMs * NS_PER_MS;
    this.#queue = new PriorityQueue(options.queuePerLeader, options.landedShareOf);
    this.#lost = (delivery) => this.#fail(delivery, "connection_lost", "not_connected");
    this.#cut = (delivery) => this.#fail(delivery, "shutting_down", "shutting_down");
    this.#noStreamCredit = (delivery) => {
      this.stats.saturated += 1;
      this.#drop(delivery, "leader_saturated");
    };
    this.#expired = (delivery) => this.#drop(delivery, "expired");
    this.#untracked = (delivery) => {
      const kind = delivery.sentNs === 0 ? "dropped" : "failed";
      this.#end(delivery, kind, "too_many_in_flight", delivery.ageMs, delivery.resend);
    };
  }

  get queued(): number {
    return this.#queue.size;
  }

  /**
   * Sends a delivery now, or queues it while the live connection is out of credit. What is accepted
   * must be passed to `reportSent` before anything else is sent or collected here.
   */
  trySend(
    connection: LeaderConnection,
    packet: Packet,
    target: Target,
    nowNs: number,
  ): TrySendResult {
    const result = this.#offer(connection, packet, target, nowNs, 0);
    if (result === "leader_saturated") this.stats.saturated += 1;
    return result;
  }

  /** Reports the delivery that `trySend` accepted at `nowNs`, now that the packet is known. */
  reportSent(
    connection: LeaderConnection,
    packet: Packet,
    target: Target,
    nowNs: number,
    resend = 0,
  ): void {
    const number = this.#unreported;
    // It waits here.
    if (number === NONE) return;
    this.#unreported = NONE;
    this.#enter(connection, packet.id, target, number, this.#sentNs, nowNs, resend);
  }

  /** False while `RESENDS_IN_FLIGHT_MAX` resends are on the wire. */
  get takesResends(): boolean {
    return this.#resendsOnWire < RESENDS_IN_FLIGHT_MAX;
  }

  /** Sends the nth resend of a packet, or queues it, by the same rank as a first send. */
  resend(
    connection: LeaderConnection,
    packet: Packet,
    target: Target,
    nowNs: number,
    resend: number,
  ): ResendResult {
    if (this.#offer(connection, packet, target, nowNs, resend) !== "accepted") return "refused";
    this.reportSent(connection, packet, target, nowNs, resend);
    return this.#sentNs === 0 ? "queued" : "sent";
  }

  /**
   * Another thread sent a delivery over a connection of this leader. `waits`: it did not see it on
   * the wire. The connection may have ended meanwhile.
   */
  sentElsewhere(
    connection: LeaderConnection,
    packet: Packet,
    target: Target,
    number: number,
    sentNs: number,
    waits: boolean,
  ): void {
    connection.carries(packet.bytes.length, sentNs);
    this.#enter(connection, packet.id, target, number, waits ? 0 : sentNs, sentNs, 0);
    if (connection.over) this.lose(connection);
  }

  /**
   * Queues a delivery. When the queue is full, it replaces one with a lower priority or is dropped
   * as `reason`.
   */
  keep(packet: Packet, target: Target, nowNs: number, reason: DeliveryReason, resend = 0): boolean {
    const queue = this.#queue;
    if (!queue.push(packet, target, nowNs, resend)) {
      const least = queue.least(queue.priorityOf(packet));
      this.#deps.counters.deliveriesEvicted += 1;
      if (least === null) return false;
      if (reason === "leader_saturated") this.#noStreamCredit(least);
      else this.#drop(least, reason);
      queue.dropLeast();
      queue.push(packet, target, nowNs, resend);
    }
    this.#deps.counters.deliveriesQueued += 1;
    return true;
  }

  /** Orders the queued deliveries anew, after landed shares changed. */
  rank(): void {
    this.#queue.rank();
  }

  /** What became of a delivery of the connection, as the engine says. */
  result(connection: LeaderConnection, number: number, result: DeliveryResult, atNs: number): void {
    const delivery = connection.deliveries.find(number);
    if (delivery === null) return;
    if (delivery.sentNs === 0 && result < DROPPED) {
      const { packetId, target, ageMs, resend } = delivery;
      this.stats.sent += 1;
      if (resend > 0) this.#resendsOnWire += 1;
      // Before the report, because what that calls might end the delivery.
      connection.deliveries.putOnWire(delivery, atNs, this.#untracked);
      this.#deps.report(packetId, target, "sent", null, rttOf(connection), ageMs, resend, atNs);
    }
    if (result === ON_WIRE) return;
    this.#resolve(connection, delivery, result, atNs);
    connection.deliveries.remove(delivery);
  }

  /** Sends queued deliveries as far as the credit allows. */
  drain(connection: LeaderConnection, nowNs: number): void {
    const queue = this.#queue;
    this.expire(nowNs, true);
    for (let row = queue.first(); row !== null; row = queue.first()) {
      const number = this.#mayOpen(connection) ? this.#sendRow(connection, row, nowNs) : BLOCKED;
      if (number === CLOSED) return;
      if (number === BLOCKED) {
        this.#recordBlocked(connection, nowNs);
        return;
      }
      if (number === TOO_LARGE) this.#drop(row, "stream_too_large");
      else if (number === SATURATED) this.#noStreamCredit(row);
      else {
        const sentNs = this.#sentNsNow(connection);
        const { packetId, target, sinceNs, resend } = row;
        this.#enter(connection, packetId, target, number, sentNs, sinceNs, resend);
      }
      queue.drop();
    }
    this.window.drained(nowNs);
  }

  /**
   * Drops deliveries queued for longer than the TTL. `established`: they waited for the leader's
   * credit; otherwise for a connection that came too late.
   */
  expire(nowNs: number, established: boolean): void {
    this.#queue.expire(nowNs - this.#ttlNs, established ? this.#noStreamCredit : this.#expired);
  }

  /**
   * Ends the deliveries that the engine should have reported an end of by now: it had no room for
   * the event. Call it when all events are read.
   */
  endUnreported({ deliveries, liveNs }: LeaderConnection, nowNs: number): void {
    const waitingNs = nowNs - liveNs - this.#ttlNs - UNREPORTED_WAITING_MS * NS_PER_MS;
    for (let row = deliveries.oldestWaiting; row !== null; row = deliveries.oldestWaiting) {
      if (row.ageMs * NS_PER_MS > waitingNs) break;
      this.#deps.counters.deliveriesUnreported += 1;
      this.#end(row, "dropped", "expired", row.ageMs, row.resend);
      deliveries.remove(row);
    }
    const onWireNs = nowNs - UNREPORTED_ON_WIRE_MS * NS_PER_MS;
    for (let row = deliveries.oldestOnWire; row !== null; row = deliveries.oldestOnWire) {
      if (row.sentNs > onWireNs) break;
      this.#deps.counters.deliveriesUnreported += 1;
      this.#untracked(row);
      deliveries.remove(row);
    }
  }

  /** The connection ended; all its deliveries fail. */
  lose(connection: LeaderConnection): void {
    connection.deliveries.clear(this.#isCut ? this.#cut : this.#lost);
  }

  /** As `lose`, because this edge stops. */
  cut(connection: LeaderConnection): void {
    this.#isCut = true;
    this.lose(connection);
  }

  /** Drops all queued deliveries. */
  clear(reason: DeliveryReason): void {
    if (this.#queue.size > 0) this.#queue.clear((delivery) => this.#drop(delivery, reason));
  }

  /** Sends a delivery now, or queues it; what it sent is in `#unreported`. */
  #offer(
    connection: LeaderConnection,
    packet: Packet,
    target: Target,
    nowNs: number,
    resend: number,
  ): TrySendResult {
    if (packet.bytes.length > this.bytesMax) return "stream_too_large";
    if (this.#queue.size === 0 && this.#mayOpen(connection)) {
      const number = connection.send(packet.bytes, nowNs, undefined, packet);
      if (number >= 0) {
        this.#unreported = number;
        this.#sentNs = this.#sentNsNow(connection);
        return "accepted";
      }
      if (number === SATURATED) return "leader_saturated";
      if (number === CLOSED) return "not_connected";
      if (number === TOO_LARGE) return "stream_too_large";
    }
    this.#recordBlocked(connection, nowNs);
    this.#sentNs = 0;
    const isKept = this.keep(packet, target, nowNs, "leader_saturated", resend);
    return isKept ? "accepted" : "leader_saturated";
  }

  #mayOpen({ engineConnection }: LeaderConnection): boolean {
    const { window } = this;
    // Asking the engine is expensive, so it is asked only where the result matters.
    return window.limit === 0 || window.mayOpen(engineConnection?.streamsLeft ?? -1);
  }

  /** A delivery that must be queued again keeps only the rest of its TTL. */
  #sendRow(connection: LeaderConnection, row: QueuedDelivery, nowNs: number): number {
    const leftNs = row.sinceNs + this.#ttlNs - nowNs;
    return connection.send(row.bytes, nowNs, Math.ceil(leftNs / NS_PER_MS), row);
  }

  #recordBlocked({ engineConnection }: LeaderConnection, nowNs: number): void {
    const { window } = this;
    const streamsLeft = window.limit === 0 ? -1 : (engineConnection?.streamsLeft ?? -1);
    window.recordBlocked(nowNs, engineConnection?.rttUs ?? 0, streamsLeft);
  }

  /** When the delivery that was accepted last was put on the wire: now; 0: it waits. */
  #sentNsNow({ engineConnection }: LeaderConnection): number {
    return engineConnection?.waits === true ? 0 : this.#deps.clock.nowNs();
  }

  /**
   * `sentNs`: when it was put on the wire; 0: not yet. `acceptedNs`: when it was given to this
   * leader.
   */
  #enter(
    connection: LeaderConnection,
    packetId: number,
    target: Target,
    number: number,
    sentNs: number,
    acceptedNs: number,
    resend: number,
  ): void {
    this.window.opened();
    const ageMs = (acceptedNs - connection.liveNs) / NS_PER_MS;
    connection.deliveries.add(number, packetId, target, sentNs, ageMs, resend, this.#untracked);
    if (sentNs === 0) return;
    this.stats.sent += 1;
    if (resend > 0) this.#resendsOnWire += 1;
    const rttUs = rttOf(connection);
    this.#deps.report(packetId, target, "sent", null, rttUs, ageMs, resend, sentNs);
  }

  #resolve(
    connection: LeaderConnection,
    { packetId, target, ageMs, sentNs, resend }: Delivery,
    result: DeliveryResult,
    resultNs: number,
  ): void {
    const { report } = this.#deps;
    if (resend > 0 && result < DROPPED) this.#resendsOnWire -= 1;
    // The engine's I/O thread may process the result before this thread reports the send.
    const atNs = Math.max(sentNs, resultNs);
    if (result === ACKED) {
      const acceptedNs = connection.liveNs + ageMs * NS_PER_MS;
      this.stats.ack((atNs - acceptedNs) / NS_PER_US);
      report(packetId, target, "acked", null, rttOf(connection), ageMs, resend, atNs);
    } else if (result === STOPPED) {
      const reason = "stream_stopped";
      report(packetId, target, "failed", reason, rttOf(connection), ageMs, resend, atNs);
    } else {
      const reason = DELIVERY_REASON_NAMES[result - DROPPED] ?? "expired";
      if (reason === "leader_saturated") this.stats.saturated += 1;
      report(packetId, target, "dropped", reason, 0, ageMs, resend, atNs);
    }
  }

  #fail(delivery: Delivery, sent: DeliveryReason, unsent: DeliveryReason): void {
    if (delivery.sentNs !== 0) this.#end(delivery, "failed", sent, delivery.ageMs, delivery.resend);
    else this.#end(delivery, "dropped", unsent, delivery.ageMs, delivery.resend);
  }

  #drop(delivery: QueuedDelivery, reason: DeliveryReason): void {
    this.#end(delivery, "dropped", reason, Number.NaN, delivery.resend);
  }

  #end(
    { packetId, target }: Delivery | QueuedDelivery,
    kind: "failed" | "dropped",
    reason: DeliveryReason,
    ageMs: number,
    resend: number,
  ): void {
    if (resend > 0 && kind === "failed") this.#resendsOnWire -= 1;
    this.#deps.report(packetId, target, kind, reason, 0, ageMs, resend);
  }
}

function rttOf({ engineConnection }: LeaderConnection): number {
  return engineConnection?.rttUs ?? 0;
}
