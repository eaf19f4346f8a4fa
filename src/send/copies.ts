/**
 * The copies of one leader: those that wait for credit and what becomes of those in flight. Hot
 * path: `offer`, `settle`, `drain`.
 *
 * A copy goes out at once while nothing waits and the leader has credit. Otherwise it waits, the
 * one that pays most first, for as long as it is of use. When the queue is full, the one that pays
 * least gives way. Each copy is told of to its end, exactly once.
 */

import { type Clock, NS_PER_MS, NS_PER_US } from "../core/clock.ts";
import { COPY_REASONS, type CopyReason } from "../core/errors.ts";
import type { Outcome, Packet, Target } from "../core/flow.ts";
import type { FlyingCopy } from "./in-flight.ts";
import type { Link } from "./leader-connection.ts";
import type { Card } from "./leader-stats.ts";
import { RESENDS_IN_FLIGHT_MAX } from "./limits.ts";
import { Waiting, type WaitingCopy } from "./priority-queue.ts";
import type { SendCounters } from "./send-counters.ts";
import { StreamWindow } from "./stream-window.ts";
import { ACKED, BLOCKED, CLOSED, DROPPED, type Fate, STOPPED, TOO_LARGE } from "./transport.ts";

/** As the engines number them. The keys of a literal are its own names. */
const DROP_REASONS = Object.keys(COPY_REASONS) as readonly CopyReason[];

export interface CopiesOptions {
  readonly queuePerPeer: number;
  readonly copyTtlMs: number;
}

/** Tells what became of a copy. */
export type ReportCopy = (
  packetId: number,
  target: Target,
  kind: Outcome["kind"],
  reason: CopyReason | null,
  rttUs: number,
  connectionAgeMs: number,
  resend: number,
  /** When it happened; now where it is not given. */
  atNs?: number,
) => void;

export interface CopiesDeps {
  readonly clock: Clock;
  readonly counters: SendCounters;
  readonly report: ReportCopy;
}

/** Taken, or the reason why not. */
export type Offer =
  | "taken"
  | "queue_full"
  | "leader_saturated"
  | "stream_too_large"
  | "not_connected";

export class Copies {
  /** Of the leader that these copies go to. */
  card: Card;
  /** Larger ones are not offered to this leader. */
  bytesMax = Number.POSITIVE_INFINITY;
  readonly window = new StreamWindow();
  readonly #deps: CopiesDeps;
  readonly #ttlNs: number;
  readonly #waiting: Waiting;
  /** Connections were ended because this edge stops. */
  #isCut = false;
  // Of the connection whose copies are being settled.
  #rttUs = 0;
  #liveNs = 0;
  #nowNs = 0;
  // Made once, so that settling a connection's copies makes no closure.
  readonly #onWire: (copy: FlyingCopy) => void;
  readonly #settled: (copy: FlyingCopy, fate: Fate) => void;
  readonly #lost: (copy: FlyingCopy) => void;
  readonly #cut: (copy: FlyingCopy) => void;
  readonly #saturated: (copy: WaitingCopy) => void;
  readonly #expired: (copy: WaitingCopy) => void;

  constructor(card: Card, deps: CopiesDeps, options: CopiesOptions) {
    this.card = card;
    this.#deps = deps;
    this.#ttlNs = options.copyTtlMs * NS_PER_MS;
    this.#waiting = new Waiting(options.queuePerPeer);
    const { report } = deps;
    this.#onWire = ({ packetId, target, ageMs, resend, sentNs }) => {
      this.card.sent += 1;
      report(packetId, target, "sent", null, this.#rttUs, ageMs, resend, sentNs);
    };
    this.#settled = (copy, fate) => this.#settle(copy, fate);
    this.#lost = (copy) => this.#fail(copy, "connection_lost", "not_connected");
    this.#cut = (copy) => this.#fail(copy, "shutting_down", "shutting_down");
    this.#saturated = (copy) => {
      this.card.saturated += 1;
      this.#drop(copy, "leader_saturated");
    };
    this.#expired = (copy) => this.#drop(copy, "expired");
  }

  get queued(): number {
    return this.#waiting.size;
  }

  /** Whether copies go out as they come: none waits, and the leader reads quickly. */
  get isClear(): boolean {
    return this.#waiting.size === 0 && this.window.limit === 0;
  }

  /** Writes a copy now, or keeps it while the live connection is out of credit. */
  offer(link: Link, packet: Packet, target: Target, nowNs: number): Offer {
    if (packet.bytes.length > this.bytesMax) return "stream_too_large";
    if (this.#waiting.size === 0 && this.#mayOpen(link)) {
      const stream = link.send(packet.bytes, nowNs);
      if (stream >= 0) {
        this.#sent(link, packet.id, target, stream, nowNs, 0);
        return "taken";
      }
      if (stream === CLOSED) return "not_connected";
      if (stream === TOO_LARGE) return "stream_too_large";
    }
    this.#holdUp(link, nowNs);
    if (this.keep(packet, target, nowNs, "leader_saturated")) return "taken";
    this.card.saturated += 1;
    return "leader_saturated";
  }

  /**
   * Writes a copy of the nth resend, and only where that takes nothing from a first send: now, with
   * credit to spare.
   */
  spare(link: Link, packet: Packet, target: Target, nowNs: number, resend: number): boolean {
    const { bytes, id } = packet;
    if (this.#waiting.size > 0 || bytes.length > this.bytesMax || !this.#mayOpen(link))
      return false;
    if (link.inFlight.size >= RESENDS_IN_FLIGHT_MAX) return false;
    const stream = link.send(bytes, nowNs);
    if (stream < 0) return false;
    this.#sent(link, id, target, stream, nowNs, resend);
    return true;
  }

  /**
   * Enters a copy that a front sent over a connection of this leader, `waits`: as far as it knows
   * it was not on the wire yet. The connection may be over by now.
   */
  adopt(
    link: Link,
    packet: Packet,
    target: Target,
    stream: number,
    sentNs: number,
    waits: boolean,
  ): void {
    const hasNews = link.adopt(stream, packet.bytes.length, waits, sentNs);
    this.#enter(link, packet.id, target, stream, waits ? 0 : sentNs, sentNs, 0);
    if (link.over) this.#failAll(link, this.#isCut ? this.#cut : this.#lost);
    else if (hasNews) this.settle(link, this.#deps.clock.nowNs());
  }

  /** Keeps a copy, in place of one that pays less, and ends as `reason`, if there is no room. */
  keep(packet: Packet, target: Target, nowNs: number, reason: CopyReason): boolean {
    const { id, bytes, priorityLamports } = packet;
    const waiting = this.#waiting;
    if (!waiting.push(id, target, bytes, priorityLamports, nowNs)) {
      const least = waiting.least(priorityLamports);
      if (least === null) return false;
      if (reason === "leader_saturated") this.#saturated(least);
      else this.#drop(least, reason);
      waiting.dropLeast();
      waiting.push(id, target, bytes, priorityLamports, nowNs);
    }
    this.#deps.counters.copiesQueued += 1;
    return true;
  }

  /** Tells of the copies of a connection that moved on. */
  settle(link: Link, nowNs: number): void {
    this.#note(link, nowNs);
    if (this.#rttUs > 0) this.card.rttUs = this.#rttUs;
    link.settle(nowNs, this.#onWire, this.#settled);
  }

  /** Sends what waits, as far as the credit goes. */
  drain(link: Link, nowNs: number): void {
    const waiting = this.#waiting;
    this.expire(nowNs, true);
    for (let row = waiting.first(); row !== null; row = waiting.first()) {
      const stream = this.#mayOpen(link) ? this.#sendRow(link, row, nowNs) : BLOCKED;
      if (stream === CLOSED) return;
      if (stream === BLOCKED) {
        this.#holdUp(link, nowNs);
        return;
      }
      if (stream === TOO_LARGE) this.#drop(row, "stream_too_large");
      else this.#sent(link, row.packetId, row.target, stream, row.sinceNs, 0);
      waiting.drop();
    }
    this.window.drained(nowNs);
  }

  /**
   * Drops what waited too long. `established`: for credit, which is the leader's doing; otherwise
   * for a connection that came too late.
   */
  expire(nowNs: number, established: boolean): void {
    this.#waiting.expire(nowNs - this.#ttlNs, established ? this.#saturated : this.#expired);
  }

  /** The connection is over, and all that it carried. */
  lose(link: Link): void {
    this.#failAll(link, this.#lost);
  }

  /** As `lose`, because this edge stops. */
  cut(link: Link): void {
    this.#isCut = true;
    this.#failAll(link, this.#cut);
  }

  /** Drops all that waits. */
  clear(reason: CopyReason): void {
    if (this.#waiting.size > 0) this.#waiting.clear((copy) => this.#drop(copy, reason));
  }

  #failAll(link: Link, failed: (copy: FlyingCopy) => void): void {
    this.#note(link, this.#deps.clock.nowNs());
    link.failAll(this.#nowNs, this.#onWire, this.#settled, failed);
  }

  #note(link: Link, nowNs: number): void {
    this.#rttUs = link.connection?.rttUs ?? 0;
    this.#liveNs = link.liveNs;
    this.#nowNs = nowNs;
  }

  #mayOpen({ connection }: Link): boolean {
    const { window } = this;
    // Asking the engine costs, so it is asked only where the answer counts.
    return window.limit === 0 || window.mayOpen(connection?.streamsLeft ?? -1);
  }

  /** Where it has to wait on, it does so for what is left of its time. */
  #sendRow(link: Link, { bytes, sinceNs }: WaitingCopy, nowNs: number): number {
    return link.send(bytes, nowNs, Math.ceil((sinceNs + this.#ttlNs - nowNs) / NS_PER_MS));
  }

  #holdUp({ connection }: Link, nowNs: number): void {
    const { window } = this;
    const streamsLeft = window.limit === 0 ? -1 : (connection?.streamsLeft ?? -1);
    window.waits(nowNs, connection?.rttUs ?? 0, streamsLeft);
  }

  /** `givenNs` is when this peer was given the copy. */
  #sent(
    link: Link,
    packetId: number,
    target: Target,
    stream: number,
    givenNs: number,
    resend: number,
  ): void {
    const sentNs = link.waits(stream) ? 0 : this.#deps.clock.nowNs();
    this.#enter(link, packetId, target, stream, sentNs, givenNs, resend);
  }

  /** `sentNs`: when it went on the wire; 0: not yet. */
  #enter(
    link: Link,
    packetId: number,
    target: Target,
    stream: number,
    sentNs: number,
    givenNs: number,
    resend: number,
  ): void {
    this.window.opened();
    const ageMs = (givenNs - link.liveNs) / NS_PER_MS;
    if (!link.inFlight.push(packetId, target, stream, sentNs, ageMs, resend)) {
      const oldest = link.inFlight.oldest();
      if (oldest !== null)
        this.#end(oldest, "failed", "too_many_in_flight", oldest.ageMs, oldest.resend);
      link.inFlight.drop();
      link.inFlight.push(packetId, target, stream, sentNs, ageMs, resend);
    }
    if (sentNs === 0) return;
    this.card.sent += 1;
    const rttUs = link.connection?.rttUs ?? 0;
    this.#deps.report(packetId, target, "sent", null, rttUs, ageMs, resend, sentNs);
  }

  #settle(copy: FlyingCopy, fate: Fate): void {
    const { packetId, target, ageMs, sentNs, endNs, resend } = copy;
    const { report } = this.#deps;
    // An engine's own thread may know of the end before this one notes that the copy was sent.
    const atNs = endNs === 0 ? this.#nowNs : Math.max(sentNs, endNs);
    if (fate === ACKED) {
      const givenNs = this.#liveNs + ageMs * NS_PER_MS;
      this.card.ack((atNs - givenNs) / NS_PER_US);
      report(packetId, target, "acked", null, this.#rttUs, ageMs, resend, atNs);
    } else if (fate === STOPPED) {
      report(packetId, target, "failed", "stream_stopped", this.#rttUs, ageMs, resend, atNs);
    } else {
      const reason = DROP_REASONS[fate - DROPPED] ?? "expired";
      if (reason === "leader_saturated") this.card.saturated += 1;
      report(packetId, target, "dropped", reason, 0, ageMs, resend, atNs);
    }
  }

  #fail(copy: FlyingCopy, sent: CopyReason, unsent: CopyReason): void {
    if (copy.sentNs !== 0) this.#end(copy, "failed", sent, copy.ageMs, copy.resend);
    else this.#end(copy, "dropped", unsent, copy.ageMs, copy.resend);
  }

  #drop(copy: WaitingCopy, reason: CopyReason): void {
    // No resend waits for credit.
    this.#end(copy, "dropped", reason, Number.NaN, 0);
  }

  #end(
    { packetId, target }: FlyingCopy | WaitingCopy,
    kind: "failed" | "dropped",
    reason: CopyReason,
    ageMs: number,
    resend: number,
  ): void {
    this.#deps.report(packetId, target, kind, reason, 0, ageMs, resend);
  }
}
