/**
 * How much later than others one source tells of a slot.
 *
 * A source notes when it first spoke for each of the last 64 slots. Its lag is the time from the
 * earliest note that any source has of a slot to its own, smoothed over about eight slots: near
 * zero for the one that is always first, and for one that is alone.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_LAG_SLOTS } from "./limits.ts";

export interface SlotLag {
  /** It spoke for a slot; `all` are the sources to compare with, itself included. */
  saw(slot: number, nowNs: number, all: Iterable<{ readonly lag: SlotLag }>): void;
  /** When it first spoke for a slot; null for one that it does not remember. */
  firstNs(slot: number): number | null;
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
      // Only news counts: a later word on an old slot is no sign of being late.
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
    get ms() {
      return ms;
    },
  };
}
