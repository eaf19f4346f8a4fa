/**
 * The time of a slot, as one source shows it: the median of the last 48 times between starts of
 * slots that follow each other closely. It follows the network by itself when its slots get
 * shorter or longer, within two dozen slots. Polled slots count only over long spans, where the
 * poll's own period is a small part, and only the last few of these, or they would follow minutes
 * later and hold the others back.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_TIME_MS_MAX, SLOT_TIME_MS_MIN } from "../core/limits.ts";
import { LastValues } from "./last-values.ts";
import { SLOT_EVENTS_KEPT } from "./limits.ts";

/**
 * `start`: the first sign of a slot was seen. `end`: the slot is complete. `polled`: somebody was
 * asked for the slot in progress; as good as a start for the estimate, too coarse for slot time.
 */
export type SlotEventKind = "start" | "end" | "polled";

export interface SlotTime {
  /** Takes in one event that is believed. */
  add(kind: SlotEventKind, slot: number, nowNs: number): void;
  /** Forgets where it was, not what it measured. */
  restart(): void;
  /** In milliseconds; null until enough slots were seen. */
  readonly ms: number | null;
}

/** Starts more slots apart than this say little about the time of one. */
const GAP_SLOTS_MAX = 8;
/** Polled slots must be this far apart: the poll's period is then a small part of the span. */
const POLLED_SPAN_SLOTS = 32;
/** Spans of polled slots whose median counts: the last half of so many shows a new slot time. */
const POLLED_SPANS_KEPT = 7;
/** Slot times seen before their median is believed. */
const SAMPLES_MIN = 4;

export function createSlotTime(): SlotTime {
  const started = new LastValues(SLOT_EVENTS_KEPT);
  const asked = new LastValues(POLLED_SPANS_KEPT);
  let medianMs: number | null = null;
  const start = { slot: -1, atNs: 0 };
  const polled = { slot: -1, atNs: 0 };

  function sample(samples: LastValues, ms: number): void {
    samples.push(ms);
    if (samples.count < SAMPLES_MIN) return;
    const median = samples.at(samples.middle);
    medianMs = Math.min(SLOT_TIME_MS_MAX, Math.max(SLOT_TIME_MS_MIN, median));
  }

  return {
    add(kind, slot, nowNs) {
      if (kind === "end") return;
      const [last, gapMin, gapMax] =
        kind === "start" ? [start, 1, GAP_SLOTS_MAX] : [polled, POLLED_SPAN_SLOTS, Infinity];
      const gap = slot - last.slot;
      const first = last.slot < 0;
      if (!first && gap < gapMin) return;
      const spanMs = (nowNs - last.atNs) / NS_PER_MS;
      last.slot = slot;
      last.atNs = nowNs;
      if (!first && gap <= gapMax) sample(kind === "start" ? started : asked, spanMs / gap);
    },
    restart() {
      start.slot = -1;
      polled.slot = -1;
    },
    get ms() {
      return medianMs;
    },
  };
}
