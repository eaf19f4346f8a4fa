/**
 * How much later than the others one source reports slots.
 *
 * A source records when it first reported each of the last 64 slots. Its lag is the time from the
 * earliest report of a slot by any source to its own, smoothed over about eight slots: near zero
 * for the source that is always first, and for a single one.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_LAG_SLOTS } from "./limits.ts";

export interface SlotLag {
  /** Reports a slot; `all` are the sources to compare with, including this one. */
  saw(slot: number, nowNs: number, all: Iterable<{ readonly lag: SlotLag }>): void;
  /** When it first reported a slot; null if not remembered. */
  firstNs(slot: number): number | null;
  /** Forgets the slots, because the source went back. */
  clear(): void;
  /** In milliseconds; null before its first slot. */
  readonly ms: number | null;
}

/** The weight of the newest slot. */
const SMOOTHING = 1 / 8;

export function createSlotLag(): SlotLag {
  const slots = new Float64Array(SLOT_LAG_SLOTS).fill(-1);
  const times = new Float64Array(SLOT_LAG_SLOTS);
  let ms: number | null = null;
  let highest = -1;

  return {
    saw(slot, nowNs, all) {
      // Counts only new slots: a later report of an old slot is no sign of lag.
      if (slot <= highest) return;
      highest = slot;
      const place = slot % SLOT_LAG_SLOTS;
      slots[place] = slot;
      times[place] = nowNs;
      let earliestNs = nowNs;
      for (const { lag } of all) earliestNs = Math.min(earliestNs, lag.firstNs(slot) ?? nowNs);
      const behindMs = (nowNs - earliestNs) / NS_PER_MS;
      ms = ms === null ? behindMs : ms + (behindMs - ms) * SMOOTHING;
    },
    firstNs(slot) {
      const place = slot % SLOT_LAG_SLOTS;
      return slots[place] === slot ? (times[place] ?? null) : null;
    },
    clear() {
      highest = -1;
      slots.fill(-1);
    },
    get ms() {
      return ms;
    },
  };
}
