/**
 * Resends transactions in flight to leaders of the plan that did not recently receive them.
 *
 * Each new plan begins a round: all due transactions are ordered by their offers times their
 * accounts' landed shares as of now, older first among equals, and then sent. Both happen in
 * slices, so that a first send never waits long. A round ends with the next plan; unsent entries
 * are counted as shed and are due again. So the limit on resends per second excludes those of the
 * least rank.
 *
 * A copy may wait for its leader. Until it has left, or will not, the transaction is not due again.
 * A resend counts, also against the client's `maxRetries`, when its first copy leaves.
 *
 *   plan ─▶ round: [ buckets 80, 80, 72 … ] ─ every 5 ms, as the budget allows ─▶ sender
 *                  what only full leaders lack stays in it, and is tried again after 20 ms
 *
 * Decision: docs/decisions/0010-a-repetition-is-a-resend.md
 */

import { type Clock, NS_PER_MS, NS_PER_S, type Timer } from "../core/clock.ts";
import type { Outcome, Plan, ResendRoom, ResendTo, Target } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import { createTimeSlicer, type TimeSlicer } from "../runtime/time-slice.ts";
import { NONE } from "./byte-store.ts";
import { type InFlightTable, PROCESSED } from "./in-flight-table.ts";
import type { LandCounters } from "./land-counters.ts";
import { CHECKS_PER_SLICE, RESEND_PAUSE_MS, SENT_LATE_MS } from "./limits.ts";
import type { DeliveryGate, Resender } from "./ports.ts";
import { deliveryTagOf, type RecentRecipients, tagOf } from "./recent-recipients.ts";
import { priorityBucketOf, ResendPriorityBuckets } from "./resend-priority.ts";

export interface ResendsDeps {
  readonly clock: Clock;
  readonly table: InFlightTable;
  readonly recipients: RecentRecipients;
  readonly counters: LandCounters;
  readonly resender: Resender;
  /** The share of an account's recent transactions that landed. */
  readonly landedShareOf: (account: string) => number;
  readonly deliveryGate: DeliveryGate;
  /** Whether no leader accepts a transaction any more. */
  readonly expiry: { isTooOld(row: number): boolean };
}

/** Time between two batches. A batch blocks the thread for a fraction of a millisecond. */
const TICK_MS = 5;
/** The same while transactions wait for a full leader; the budget accumulates as long. */
const WAIT_TICK_MS = 20;
/** Maximum transactions per batch that no leader accepts: they cost time, but no budget. */
const UNACCEPTED_MAX = 128;
/** Share of the budget left to resends when first sends use all of it. */
const SHARE_MIN = 0.25;

type Leader = Pick<Target, "identity" | "address">;

/** A leader as the marks identify it. */
interface Tagged extends Leader {
  readonly identityTag: number;
  readonly addressTag: number;
}

export class Resends {
  readonly #deps: ResendsDeps;
  readonly #perNs: number;
  #leaders: readonly Tagged[] = [];
  /** The current round. */
  readonly #due: ResendPriorityBuckets;
  /** Scans the rows in flight for it, the oldest first. */
  readonly #slicer: TimeSlicer;
  /** The row that was checked last, and the packet that it held. */
  #checkedRow = NONE;
  #checkedId = NONE;
  /** Packets up to this one were checked. */
  #checkedTo = NONE;
  #timer: Timer | null = null;
  /** The first entries of the round that wait for full leaders; each second batch skips them. */
  #waiting = 0;
  #skipsNext = false;
  #budget = 0;
  #tickedNs = 0;
  /** What was sent before this is sent again without a pause. */
  #urgentNs = Number.NEGATIVE_INFINITY;
  /** First sends since the last batch. */
  #firstSends = 0;
  #running = false;
  /** The row that `#to` sends. */
  #row = NONE;
  #nowNs = 0;
  /** A copy of the current resend is on the wire. */
  #hasLeft = false;
  /** Whether the gate lets that row pass; null before it was asked. */
  #mayPass: boolean | null = null;
  readonly #to: ResendTo & { ordinal: number };

  /** `perSecond` of 0: no rounds. */
  constructor(deps: ResendsDeps, perSecond: number) {
    this.#deps = deps;
    this.#perNs = perSecond / NS_PER_S;
    this.#due = new ResendPriorityBuckets(deps.table.capacity);
    this.#slicer = createTimeSlicer(deps.clock, () => this.#collect());
    this.#to = {
      ordinal: 0,
      wants: (target) => {
        const { identityTag, addressTag } = this.#tagged(target);
        const { recipients } = deps;
        return recipients.allows(this.#row, identityTag, addressTag, this.#nowNs);
      },
      mayLeave: () => this.#pass(),
      accepted: (target, isQueued) => {
        const { table } = deps;
        if (isQueued) table.copyWaits(this.#row);
        else this.#hasLeft = true;
        const packetId = table.packetId[this.#row] ?? NONE;
        const delivery = deliveryTagOf(packetId, this.#to.ordinal);
        this.#mark(this.#row, target, this.#nowNs, delivery);
      },
    };
  }

  start(): void {
    this.#running = true;
    this.#tickedNs = this.#deps.clock.nowNs();
  }

  stop(): void {
    this.#running = false;
    this.#timer?.cancel();
    this.#timer = null;
    this.#slicer.stop();
    this.#due.clear();
  }

  /** Sets the leaders to send to; begins a round. */
  usePlan(plan: Plan): void {
    this.#leaders = plan.send.map(taggedOf);
    this.#beginRound();
  }

  /**
   * Forgets which leaders have what, because it may be lost. If urgent, all of it is due now, and a
   * round begins; otherwise the next plan's round sends it.
   */
  clearMarks(isUrgent: boolean): void {
    const nowNs = this.#deps.clock.nowNs();
    this.#deps.recipients.clearAll(nowNs);
    if (!isUrgent) return;
    this.#urgentNs = nowNs;
    this.#beginRound();
  }

  #beginRound(): void {
    if (!this.#running) return;
    this.#deps.counters.resendsShed += this.#due.length;
    this.#due.clear();
    this.#waiting = 0;
    this.#skipsNext = false;
    this.#slicer.stop();
    this.#checkedRow = NONE;
    this.#checkedTo = NONE;
    if (this.#perNs > 0 && this.#leaders.length > 0) this.#slicer.start();
  }

  /**
   * Called before a transaction is sent for the first time, so that its leaders count as served.
   * Hot path.
   */
  first(row: number, nowNs: number): void {
    this.#deps.recipients.clear(row);
    this.again(row, this.#deps.table.packetId[row] ?? NONE, nowNs);
  }

  /** Called before a transaction in flight is sent elsewhere as this packet, likewise. Hot path. */
  again(row: number, packetId: number, nowNs: number): void {
    this.#firstSends += 1;
    const delivery = deliveryTagOf(packetId, 0);
    const { recipients } = this.#deps;
    const leaders = this.#leaders;
    for (let index = 0; index < leaders.length; index += 1) {
      const leader = leaders[index];
      if (leader === undefined) continue;
      recipients.add(row, leader.identityTag, leader.addressTag, nowNs, delivery);
    }
  }

  /**
   * Records that a delivery is on the wire, and renews the entry of the transaction in the dedup
   * cache if it left late. Hot path.
   */
  sent(row: number, outcome: Outcome): void {
    const { table } = this.#deps;
    const { atNs, packetId, resend } = outcome;
    this.#mark(row, outcome, atNs, deliveryTagOf(packetId, resend));
    if (resend > 0 && row !== this.#row) this.#leftLate(row, resend);
    if (atNs - (table.entryNs[row] ?? 0) > SENT_LATE_MS * NS_PER_MS) this.#renew(row, atNs);
  }

  /** Records that a delivery was never sent. */
  unsent(row: number, outcome: Outcome): void {
    const { packetId, resend } = outcome;
    const { identityTag, addressTag } = this.#tagged(outcome);
    const delivery = deliveryTagOf(packetId, resend);
    this.#deps.recipients.remove(row, identityTag, addressTag, delivery);
    if (resend > 0) this.#deps.table.copyEnded(row);
  }

  /** A copy that waited left: its resend counts now, unless another copy of it left before. */
  #leftLate(row: number, resend: number): void {
    const { table } = this.#deps;
    table.copyEnded(row);
    if (resend === table.countedResend[row]) return;
    this.#count(row, resend);
    this.#useRetry(row);
  }

  #count(row: number, resend: number): void {
    this.#deps.table.countedResend[row] = resend;
    this.#deps.counters.resends += 1;
  }

  #useRetry(row: number): void {
    const { retriesLeft } = this.#deps.table;
    retriesLeft[row] = (retriesLeft[row] ?? 0) - 1;
  }

  #mark(row: number, leader: Leader, atNs: number, deliveryTag: number): void {
    const { identityTag, addressTag } = this.#tagged(leader);
    this.#deps.recipients.add(row, identityTag, addressTag, atNs, deliveryTag);
  }

  /** Resends one transaction immediately; returns how many leaders accepted. */
  resend(row: number): number {
    const { table, counters, resender, clock, expiry } = this.#deps;
    if (!this.#running || table.is(row, PROCESSED) || expiry.isTooOld(row)) return 0;
    this.#nowNs = clock.nowNs();
    this.#row = row;
    this.#hasLeft = false;
    this.#mayPass = null;
    this.#to.ordinal = (table.resends[row] ?? 0) + 1;
    const packet = createPacket(
      table.packetId[row] ?? NONE,
      table.bytes(row),
      table.accountOf(row),
      table.sinceNs[row] ?? 0,
      null,
      table.offeredLamports[row] ?? 0,
    );
    const deliveries = resender.resend(packet, this.#to);
    this.#row = NONE;
    if (deliveries === 0) return 0;
    table.lastSentNs[row] = this.#nowNs;
    table.resends[row] = this.#to.ordinal;
    if (this.#hasLeft) this.#count(row, this.#to.ordinal);
    counters.resendDeliveries += deliveries;
    return deliveries;
  }

  /** Whether the gate lets the current row pass; asked once. */
  #pass(): boolean {
    if (this.#mayPass === null) {
      this.#mayPass = this.#renew(this.#row, this.#nowNs);
      if (!this.#mayPass) this.#deps.counters.resendsSuperseded += 1;
    }
    return this.#mayPass;
  }

  #renew(row: number, nowNs: number): boolean {
    const { table, deliveryGate } = this.#deps;
    if (!deliveryGate.renew(table.bytes(row), table.entryNs[row] ?? 0, nowNs)) return false;
    table.entryNs[row] = nowNs;
    return true;
  }

  #arm(delayMs: number): void {
    this.#timer = this.#deps.clock.after(delayMs, () => {
      this.#timer = null;
      const isFull = this.#sendBatch();
      if (this.#due.length > 0) this.#arm(isFull ? WAIT_TICK_MS : TICK_MS);
    });
  }

  /** Returns whether a transaction waits because the leaders that lack it are full. */
  #sendBatch(): boolean {
    const { clock } = this.#deps;
    this.#nowNs = clock.nowNs();
    this.#refillBudget(this.#nowNs);
    // The highest priority may be among the rows that were not checked yet.
    if (this.#slicer.isBusy) return false;
    const skip = this.#skipsNext ? this.#waiting : 0;
    let full = 0;
    let checked = 0;
    let unaccepted = 0;
    this.#due.visit((row, packetId) => {
      if (this.#budget < 1 || checked === CHECKS_PER_SLICE || unaccepted === UNACCEPTED_MAX)
        return "last";
      checked += 1;
      const room = this.#roomFor(row, packetId);
      if (room === "full") full += 1;
      if (room !== "room") return room === "full" ? "kept" : "taken";
      if (this.resend(row) === 0) {
        unaccepted += 1;
        return "taken";
      }
      this.#budget -= 1;
      if (this.#hasLeft) this.#useRetry(row);
      return "taken";
    }, skip);
    this.#endBatch(skip, full, checked === CHECKS_PER_SLICE);
    return skip > 0 || full > 0;
  }

  /** After a batch of `CHECKS_PER_SLICE` checks, the next one checks the entries behind it. */
  #endBatch(skip: number, full: number, isCut: boolean): void {
    if (isCut) this.#waiting = Math.max(this.#waiting, skip + full);
    else if (skip > 0 || full === 0) this.#waiting = 0;
    this.#skipsNext = skip === 0 && this.#waiting > 0;
  }

  /** As `Resender.roomFor`, for a row of the round; `none` if it is no longer due. */
  #roomFor(row: number, packetId: number): ResendRoom {
    const { table, resender } = this.#deps;
    if (!table.holds(row, packetId) || !this.#isDue(row, this.#nowNs)) return "none";
    this.#row = row;
    const room = resender.roomFor(this.#to);
    this.#row = NONE;
    return room;
  }

  /** First sends use the same budget, but never all of it. */
  #refillBudget(nowNs: number): void {
    const earned = (nowNs - this.#tickedNs) * this.#perNs;
    const left = Math.max(earned * SHARE_MIN, earned - this.#firstSends);
    const max = Math.max(1, WAIT_TICK_MS * NS_PER_MS * this.#perNs);
    if (this.#perNs > 0) this.#budget = Math.min(this.#budget + left, max);
    this.#tickedNs = nowNs;
    this.#firstSends = 0;
  }

  /** Checks a slice of rows for due resends. Returns whether rows remain. */
  #collect(): boolean {
    const { table, clock } = this.#deps;
    const nowNs = clock.nowNs();
    let row = this.#nextRow();
    for (let checked = 0; row !== NONE && checked < CHECKS_PER_SLICE; checked += 1) {
      const id = table.packetId[row] ?? NONE;
      if (id > this.#checkedTo) {
        if (this.#isDue(row, nowNs)) this.#due.add(row, id, this.#priorityBucketOf(row));
        this.#checkedTo = id;
      }
      this.#checkedRow = row;
      this.#checkedId = id;
      row = table.newerThan(row);
    }
    if (row !== NONE) return true;
    if (this.#due.length > 0 && this.#timer === null) this.#arm(TICK_MS);
    return false;
  }

  /**
   * The row after the one that was checked last. If that row was reused meanwhile, the scan
   * restarts and skips the packets already checked, because ids ascend.
   */
  #nextRow(): number {
    const { table } = this.#deps;
    const isThere = this.#checkedRow !== NONE && table.holds(this.#checkedRow, this.#checkedId);
    return isThere ? table.newerThan(this.#checkedRow) : table.oldest;
  }

  #priorityBucketOf(row: number): number {
    const { table, landedShareOf } = this.#deps;
    return priorityBucketOf(
      (table.offeredLamports[row] ?? 0) * landedShareOf(table.accountOf(row)),
    );
  }

  #isDue(row: number, nowNs: number): boolean {
    const { table, expiry } = this.#deps;
    if ((table.retriesLeft[row] ?? 0) <= 0 || table.is(row, PROCESSED)) return false;
    if ((table.copiesWaiting[row] ?? 0) > 0) return false;
    const sentNs = table.lastSentNs[row] ?? 0;
    const isPaused = nowNs - sentNs < RESEND_PAUSE_MS * NS_PER_MS;
    if (isPaused && sentNs >= this.#urgentNs) return false;
    return !expiry.isTooOld(row) && this.#isMissingAtLeader(row, nowNs);
  }

  /** Whether the transaction may be sent to a leader of the plan now. */
  #isMissingAtLeader(row: number, nowNs: number): boolean {
    const leaders = this.#leaders;
    for (let index = 0; index < leaders.length; index += 1) {
      const leader = leaders[index];
      if (leader === undefined) continue;
      const { identityTag, addressTag } = leader;
      if (this.#deps.recipients.allows(row, identityTag, addressTag, nowNs)) return true;
    }
    return false;
  }

  /** The leader's tags; cached for the leaders of the plan. */
  #tagged(leader: Leader): Tagged {
    const leaders = this.#leaders;
    for (let index = 0; index < leaders.length; index += 1) {
      const known = leaders[index];
      if (known?.address === leader.address && known.identity === leader.identity) return known;
    }
    return taggedOf(leader);
  }
}

function taggedOf({ identity, address }: Leader): Tagged {
  return { identity, address, identityTag: tagOf(identity), addressTag: tagOf(address) };
}
