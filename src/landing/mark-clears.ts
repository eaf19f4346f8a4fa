/**
 * Decides when the marks of the leaders that have a transaction are cleared, because what they
 * acknowledged may be lost.
 *
 * - The slot went back: the blocks after it are deleted, and so is what their leaders had taken.
 * - The confirmation stands still while slots pass: blocks may hold votes only. Then the marks are
 *   cleared when it begins, with a plan each 400 ms, and when it ends.
 *
 * Each time, every transaction in flight is sent once more to each leader of the plan, so that a
 * feed that goes back and forth must not do it freely: a bucket of clears limits it, and refills
 * slowly. Without one in the bucket the marks stay, and each lasts 2 s as usual.
 */

import { NS_PER_MS } from "../core/clock.ts";
import type { LandCounters } from "./land-counters.ts";
import { MARK_CLEAR_GAP_MS, MARK_CLEAR_REFILL_MS, MARK_CLEARS_MAX } from "./limits.ts";

export class MarkClears {
  readonly #counters: LandCounters;
  #isStalled = false;
  /** Clears left at `#filledNs`. */
  #left = MARK_CLEARS_MAX;
  #filledNs = 0;
  #clearedNs = Number.NEGATIVE_INFINITY;

  constructor(counters: LandCounters) {
    this.#counters = counters;
  }

  /** The slot went back. Returns whether to clear the marks. */
  slotWentBack(nowNs: number): boolean {
    return this.#take(nowNs, "marksClearedSlotBack");
  }

  /** The confirmation stands still from now on, or no longer. Returns whether to clear marks. */
  setStalled(isStalled: boolean, nowNs: number): boolean {
    this.#isStalled = isStalled;
    return this.#take(nowNs, "marksClearedUnconfirmed");
  }

  /** There is a new plan. Returns whether to clear the marks before it is used. */
  planned(nowNs: number): boolean {
    if (!this.#isStalled || nowNs - this.#clearedNs < MARK_CLEAR_GAP_MS * NS_PER_MS) return false;
    return this.#take(nowNs, "marksClearedUnconfirmed");
  }

  #take(nowNs: number, reason: "marksClearedSlotBack" | "marksClearedUnconfirmed"): boolean {
    const filled = (nowNs - this.#filledNs) / (MARK_CLEAR_REFILL_MS * NS_PER_MS);
    this.#left = Math.min(MARK_CLEARS_MAX, this.#left + Math.max(0, filled));
    this.#filledNs = nowNs;
    if (this.#left < 1) {
      this.#counters.markClearsRefused += 1;
      return false;
    }
    this.#left -= 1;
    this.#clearedNs = nowNs;
    this.#counters[reason] += 1;
    return true;
  }
}
