/**
 * The slot at a past time, as far as announcements show it by now.
 *
 * The last 256 announcements are kept with their arrival times. Between two of them slots pass by
 * the clock, but none reaches the slot announced next, which had not begun. So a time before the
 * newest announcement gives the slot known for it, although the current slot may have run ahead of
 * the cluster; a later time gives the estimate.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_EXTRAPOLATION_MAX, SLOT_PAST_KEPT } from "./limits.ts";

export class SlotPast {
  readonly #slots = new Float64Array(SLOT_PAST_KEPT);
  readonly #times = new Float64Array(SLOT_PAST_KEPT);
  #count = 0;

  /** Records that `slot` was announced at `atNs`; ignored unless later than those before. */
  record(slot: number, atNs: number): void {
    if (this.#count > 0 && slot <= (this.#slots[this.#place(1)] ?? 0)) return;
    this.#count += 1;
    this.#slots[this.#place(1)] = slot;
    this.#times[this.#place(1)] = atNs;
  }

  /** Clears announcements that were wrong or belong to another cluster. */
  clear(): void {
    this.#count = 0;
  }

  /** The slot at a time, with slots of `slotDurationMs`; null if no kept announcement covers it. */
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

  /** Index of the newest (age 1), the one before it, and so on. */
  #place(age: number): number {
    return (this.#count - age) % SLOT_PAST_KEPT;
  }
}
