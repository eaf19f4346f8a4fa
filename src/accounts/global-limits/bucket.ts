/**
 * One account's bucket in its global limit, as this edge knows it: the time when it is
 * full again, and the requests not yet reported to the store.
 *
 * The bucket may be one that several threads charge, in the native engine. A count next to it rises
 * before each charge. Who reads the bucket first and the count second therefore counts every charge
 * in the bucket. A request that is counted but not yet charged may briefly appear in both and is
 * charged twice until the store's next response.
 */

import { NS_PER_S } from "../../core/clock.ts";
import type { Plan } from "../keys/key.ts";

/** Accepted requests of one account. */
export interface Spent {
  readonly account: string;
  readonly count: number;
  /** Cost of one request at the plan's rate. */
  readonly intervalNs: number;
  /** Time since the first of them. */
  readonly ageNs: number;
}

/** The last period without the store. */
export interface Away {
  /** Number of edges that each bucket was divided by. */
  readonly share: number;
  readonly untilNs: number;
}

/** Buckets that other threads charge too. All threads divide by the edge count. */
export interface BucketStates {
  /**
   * Reads the bucket in this slot, and then its count: when it is full, its accepted requests as a
   * 32-bit integer that wraps around, and what one of them costs. Valid until the next call.
   */
  read(limitSlot: number): BucketState;
  /** Compare-and-set; returns whether the value was still `wasNs`. */
  replace(limitSlot: number, wasNs: number, fullNs: number): boolean;
  /** The bucket's slot is free, unless its count is no longer `count`: then it is charged anew. */
  release(limitSlot: number, count: number): void;
  /** Up to `countMax` accounts whose bucket was charged and has a slot from now on. */
  takeCharged(countMax: number): readonly ChargedBucket[];
  /** Sets for all threads the number of edges that divide each bucket. */
  setEdgeCount(count: number): void;
}

export interface BucketState {
  readonly fullNs: number;
  readonly count: number;
  readonly intervalNs: number;
}

export interface ChargedBucket {
  readonly account: string;
  readonly limitSlot: number;
}

export class Bucket {
  #intervalNs: number;
  #fullNs = 0;
  /**
   * Accepted but unreported requests at the current cost, so possibly fractional after a cost
   * change; and when the first of them was accepted.
   */
  #unsent = 0;
  #unsentNs = 0;
  /** Where other threads charge the bucket too; null where only this thread charges it. */
  readonly #limitStates: BucketStates | null;
  readonly #limitSlot: number;
  /** The count already included in `#unsent` or reported; and when it was last checked. */
  #seen = 0;
  #lookedNs = 0;

  /** One that this thread charges alone, or that of this slot. */
  constructor(intervalNs: number, limitStates: BucketStates | null = null, limitSlot = 0) {
    this.#intervalNs = intervalNs;
    this.#limitStates = limitStates;
    this.#limitSlot = limitSlot;
  }

  /** Sets the cost of later requests; accepted requests keep theirs. */
  reprice(intervalNs: number, nowNs: number): void {
    if (intervalNs === this.#intervalNs) return;
    this.look(nowNs);
    this.#setPrice(intervalNs);
  }

  #setPrice(intervalNs: number): void {
    this.#unsent = Math.min((this.#unsent * this.#intervalNs) / intervalNs, UNSENT_MAX);
    this.#intervalNs = intervalNs;
  }

  /** Cost of one request. */
  get intervalNs(): number {
    return this.#intervalNs;
  }

  /** When the bucket is full again, by this edge's clock. */
  get fullNs(): number {
    return this.#limitStates?.read(this.#limitSlot).fullNs ?? this.#fullNs;
  }

  /** Time until the next request is allowed if `share` edges divide the bucket. Changes nothing. */
  waitNs(plan: Plan, nowNs: number, share: number): number {
    const burst = Math.max(1, Math.floor(plan.burst / share));
    return Math.max(0, this.#fullNs - nowNs - (burst - 1) * this.#intervalNs * share);
  }

  /** Charges one request and returns 0, or returns the wait in nanoseconds and charges nothing. */
  tryCharge(plan: Plan, nowNs: number, share: number): number {
    const wait = this.waitNs(plan, nowNs, share);
    if (wait > 0) return wait;
    this.#fullNs = Math.max(this.#fullNs, nowNs) + this.#intervalNs * share;
    this.#add(1, nowNs);
    return 0;
  }

  /** Frees the slot of a bucket that is full and reported. */
  release(): void {
    this.#limitStates?.release(this.#limitSlot, this.#seen);
  }

  /** Adds what other threads accepted; returns whether anything must be reported. */
  look(nowNs: number): boolean {
    if (this.#limitStates === null) return this.#unsent >= 1;
    const { count, intervalNs } = this.#limitStates.read(this.#limitSlot);
    if (intervalNs > 0 && intervalNs !== this.#intervalNs) this.#setPrice(intervalNs);
    // Lower than before: a request was counted, then rejected. The next one is already reported.
    const fresh = (count - this.#seen) | 0;
    if (fresh > 0) {
      this.#seen = count;
      // If the bucket was full, the first one was accepted at this time; otherwise it does not
      // matter.
      const firstNs = this.fullNs - fresh * this.#intervalNs;
      this.#add(fresh, firstNs < this.#lookedNs ? nowNs : Math.min(firstNs, nowNs));
    }
    this.#lookedNs = nowNs;
    return this.#unsent >= 1;
  }

  /**
   * Of the requests accepted without the store, keeps only those that this edge's share has not
   * repaid since, dated now. Dated at acceptance they would count in full if another edge reported
   * the account since.
   */
  repay({ share, untilNs }: Away, nowNs: number): void {
    this.look(nowNs);
    const ageNs = nowNs - this.#unsentNs;
    if (this.#unsent < 1 || this.#unsentNs >= untilNs || ageNs < AWAY_NS_MIN) return;
    const eachNs = this.#intervalNs * share;
    const behind = Math.max(0, Math.ceil((this.fullNs - nowNs) / eachNs));
    // Requests accepted just before `untilNs` are in the bucket undivided.
    const unpaid = Math.ceil(this.#unsent - ageNs / eachNs);
    this.#unsent = Math.min(this.#unsent, Math.max(behind, unpaid));
    this.#unsentNs = nowNs;
  }

  /** Returns the unreported requests and marks them as reported. */
  take(account: string, nowNs: number): Spent {
    this.look(nowNs);
    const count = Math.floor(this.#unsent);
    this.#unsent -= count;
    const ageNs = count === 0 ? 0 : nowNs - this.#unsentNs;
    return { account, count, intervalNs: this.#intervalNs, ageNs };
  }

  /** Restores requests that were not reported, or possibly not. */
  putBack({ count, intervalNs, ageNs }: Spent, askedNs: number): void {
    if (count > 0) this.#unsentNs = askedNs - ageNs;
    this.#unsent = Math.min(this.#unsent + (count * intervalNs) / this.#intervalNs, UNSENT_MAX);
  }

  /**
   * Applies the store's response to the report sent at `askedNs`. It excludes later requests; the
   * network delay is in the client's favour.
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

/** Cost of one request at the plan's rate. */
export function costNs({ ratePerSecond }: Plan): number {
  return Math.ceil(NS_PER_S / ratePerSecond);
}

/** Newer requests are reported in full: an unstable store grants no more than that. */
const AWAY_NS_MIN = 2 * NS_PER_S;
/** Maximum debt that an edge reports after an outage; older debt is dropped. */
const UNSENT_MAX = 1_000_000;
