/**
 * The bucket of one account's limit over all edges, as this edge knows it: when it is full again,
 * and what was let through that the other edges have not been told of.
 *
 * It may lie in a cell that several threads charge ("held"); then it is full again when the cell
 * says so, and what they let through is seen by a count beside the cell, which rises before a
 * request is charged. So who reads the cell first and the count then has counted all that the cell
 * holds; one that is counted and not charged as yet may stand in both for a moment, and is
 * charged twice until the next answer of the store.
 */

import { NS_PER_S } from "../../core/clock.ts";
import type { Plan } from "../keys/key.ts";

/** Requests of one account that were let through. */
export interface Spent {
  readonly account: string;
  readonly count: number;
  /** What one request costs at the plan's rate. */
  readonly intervalNs: number;
  /** How long ago the first of them was. */
  readonly ageNs: number;
}

/** The last time in which this edge was without the store. */
export interface Away {
  /** The edges that each bucket was divided by. */
  readonly share: number;
  readonly untilNs: number;
}

/** Where buckets lie that other threads charge as well. All of them reckon with the sharers. */
export interface BucketStates {
  /** How long the next request would have to wait. Changes nothing. */
  waitNs(limitSlot: number, nowNs: number, plan: Plan): number;
  /** Lets one request through and counts it: 0, or the nanoseconds to wait, and nothing is done. */
  tryCharge(limitSlot: number, nowNs: number, plan: Plan): number;
  fullNsOf(limitSlot: number): number;
  /** Requests let through, as a whole number of 32 bits that begins anew when it is full. */
  countOf(limitSlot: number): number;
  /** For a cell that no other thread knows as yet. */
  set(limitSlot: number, fullNs: number): void;
  /** Sets it where it is still what it was; whether that was so. */
  replace(limitSlot: number, wasNs: number, fullNs: number): boolean;
  /** Tells all threads by how many edges each bucket is divided. */
  setEdgeCount(count: number): void;
}

export class Bucket {
  #intervalNs: number;
  #fullNs = 0;
  /**
   * Let through and not yet told, in requests at today's price, so after another price also parts
   * of one; and when the first of them passed.
   */
  #unsent = 0;
  #unsentNs = 0;
  /** Where it is held; null where only this thread charges it. */
  #limitStates: BucketStates | null = null;
  #limitSlot = 0;
  /** What of the count of its cell is in `#unsent`, or told; and when that was last looked at. */
  #seen = 0;
  #lookedNs = 0;

  constructor(intervalNs: number) {
    this.#intervalNs = intervalNs;
  }

  /** One request costs so much from now on; those that were let through keep their price. */
  reprice(intervalNs: number, nowNs: number): void {
    if (intervalNs === this.#intervalNs) return;
    this.look(nowNs);
    this.#unsent = Math.min((this.#unsent * this.#intervalNs) / intervalNs, UNSENT_MAX);
    this.#intervalNs = intervalNs;
  }

  /** What one request costs. */
  get intervalNs(): number {
    return this.#intervalNs;
  }

  /** When it is full again, by this edge's clock. */
  get fullNs(): number {
    return this.#limitStates?.fullNsOf(this.#limitSlot) ?? this.#fullNs;
  }

  /** How long the next request has to wait where `share` edges divide it. Changes nothing. */
  waitNs(plan: Plan, nowNs: number, share: number): number {
    if (this.#limitStates !== null) return this.#limitStates.waitNs(this.#limitSlot, nowNs, plan);
    const burst = Math.max(1, Math.floor(plan.burst / share));
    return Math.max(0, this.#fullNs - nowNs - (burst - 1) * this.#intervalNs * share);
  }

  /** Lets one request through: 0, or the nanoseconds to wait, and then nothing is charged. */
  tryCharge(plan: Plan, nowNs: number, share: number): number {
    if (this.#limitStates !== null)
      return this.#limitStates.tryCharge(this.#limitSlot, nowNs, plan);
    const wait = this.waitNs(plan, nowNs, share);
    if (wait > 0) return wait;
    this.#fullNs = Math.max(this.#fullNs, nowNs) + this.#intervalNs * share;
    this.#add(1, nowNs);
    return 0;
  }

  /** Lies in this cell from now on. */
  delegate(limitStates: BucketStates, limitSlot: number, nowNs: number): void {
    limitStates.set(limitSlot, this.#fullNs);
    this.#seen = limitStates.countOf(limitSlot);
    this.#lookedNs = nowNs;
    this.#limitSlot = limitSlot;
    this.#limitStates = limitStates;
  }

  /** Lies here again; no other thread charges it any more. */
  release(nowNs: number): void {
    this.look(nowNs);
    this.#fullNs = this.fullNs;
    this.#limitStates = null;
  }

  /** Takes in what other threads let through; whether anything is to be told. */
  look(nowNs: number): boolean {
    if (this.#limitStates === null) return this.#unsent >= 1;
    const count = this.#limitStates.countOf(this.#limitSlot);
    // Fewer than before: one was counted and then refused. The next one is told already.
    const fresh = (count - this.#seen) | 0;
    if (fresh > 0) {
      this.#seen = count;
      // From a full bucket the first of them passed then, and from another it does not matter.
      const firstNs = this.fullNs - fresh * this.#intervalNs;
      this.#add(fresh, firstNs < this.#lookedNs ? nowNs : Math.min(firstNs, nowNs));
    }
    this.#lookedNs = nowNs;
    return this.#unsent >= 1;
  }

  /**
   * Of what passed while this edge was away, keeps only what its share has not paid back since, as
   * of now. Told as of then, it would count in full where another edge told of the account since.
   */
  repay({ share, untilNs }: Away, nowNs: number): void {
    this.look(nowNs);
    const ageNs = nowNs - this.#unsentNs;
    if (this.#unsent < 1 || this.#unsentNs >= untilNs || ageNs < AWAY_NS_MIN) return;
    const eachNs = this.#intervalNs * share;
    const behind = Math.max(0, Math.ceil((this.fullNs - nowNs) / eachNs));
    // What passed just before that time stands in the bucket undivided.
    const unpaid = Math.ceil(this.#unsent - ageNs / eachNs);
    this.#unsent = Math.min(this.#unsent, Math.max(behind, unpaid));
    this.#unsentNs = nowNs;
  }

  /** What is to be told; it counts as told from now on. */
  take(account: string, nowNs: number): Spent {
    this.look(nowNs);
    const count = Math.floor(this.#unsent);
    this.#unsent -= count;
    const ageNs = count === 0 ? 0 : nowNs - this.#unsentNs;
    return { account, count, intervalNs: this.#intervalNs, ageNs };
  }

  /** It was not told, or nobody knows whether it was. */
  putBack({ count, intervalNs, ageNs }: Spent, askedNs: number): void {
    if (count > 0) this.#unsentNs = askedNs - ageNs;
    this.#unsent = Math.min(this.#unsent + (count * intervalNs) / this.#intervalNs, UNSENT_MAX);
  }

  /**
   * Takes over what the store answered to what was told at `askedNs`. What passed since is not in
   * that; the way there is to the client's favour.
   */
  settle(askedNs: number, behindNs: number, nowNs: number): void {
    for (;;) {
      const wasNs = this.fullNs;
      this.look(nowNs);
      const fullNs = askedNs + behindNs + this.#unsent * this.#intervalNs;
      if (this.#limitStates === null) this.#fullNs = fullNs;
      else if (!this.#limitStates.replace(this.#limitSlot, wasNs, fullNs)) continue;
      return;
    }
  }

  #add(count: number, firstNs: number): void {
    if (this.#unsent < 1) this.#unsentNs = firstNs;
    this.#unsent = Math.min(this.#unsent + count, UNSENT_MAX);
  }
}

/** What one request costs at the plan's rate. */
export function costNs({ ratePerSecond }: Plan): number {
  return Math.ceil(NS_PER_S / ratePerSecond);
}

/** What is younger is told in full: a store that comes and goes gives nobody more than that. */
const AWAY_NS_MIN = 2 * NS_PER_S;
/** What an edge owes the store at most after it was away; older debts are forgiven. */
const UNSENT_MAX = 1_000_000;
