/**
 * Which slot was in progress at a moment that has passed, as far as announcements show it by now.
 *
 * The last 256 announcements are kept, each with the time at which it came. Between two of them
 * slots pass by the clock, and none of these is as late as the one that was announced next: that
 * one had not begun. So a moment before the newest announcement has the slot that is known of it,
 * where the current slot may have run ahead of the cluster; a moment after it has the estimate.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_EXTRAPOLATION_MAX, SLOT_PAST_KEPT } from "./limits.ts";

export class SlotPast {
  readonly #slots = new Float64Array(SLOT_PAST_KEPT);
  readonly #times = new Float64Array(SLOT_PAST_KEPT);
  #count = 0;

  /** `slot` was announced at `atNs`; counts where it is later than those before. */
  record(slot: number, atNs: number): void {
    if (this.#count > 0 && slot <= (this.#slots[this.#place(1)] ?? 0)) return;
    this.#count += 1;
    this.#slots[this.#place(1)] = slot;
    this.#times[this.#place(1)] = atNs;
  }

  /** What was announced was wrong, or is another cluster's. */
  clear(): void {
    this.#count = 0;
  }

  /** The slot at a time, `paceMs` long each; null where no announcement that is kept tells it. */
  at(nowNs: number, slotDurationMs: number): number | null {
    let next = Number.POSITIVE_INFINITY;
    for (let age = 1; age <= Math.min(this.#count, SLOT_PAST_KEPT); age += 1) {
      const slot = this.#slots[this.#place(age)] ?? 0;
      const sinceNs = nowNs - (this.#times[this.#place(age)] ?? 0);
      if (sinceNs >= 0) {
        const passed = Math.floor(sinceNs / (slotDurationMs * NS_PER_MS));
        return passed > SLOT_EXTRAPOLATION_MAX ? null : Math.min(slot + passed, next - 1);
      }
      next = slot;
    }
    return null;
  }

  /** Where the newest lies (age 1), the one before it, and so on. */
  #place(age: number): number {
    return (this.#count - age) % SLOT_PAST_KEPT;
  }
}
