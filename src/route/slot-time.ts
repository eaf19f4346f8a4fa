/**
 * The slot time according to one source: the median of the last 48 times between starts of nearby
 * slots. It adapts within two dozen slots when slots get shorter or longer. Polled slots count only
 * over long spans, where the polling period is a small part, and only the last few, or they would
 * lag by minutes and hold the others back.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_TIME_MS_MAX, SLOT_TIME_MS_MIN } from "../core/limits.ts";
import { LastValues } from "./last-values.ts";
import { SLOT_EVENTS_KEPT } from "./limits.ts";

/**
 * `start`: first sign of a slot. `end`: the slot is complete. `polled`: a node returned the current
 * slot; as good as a start for the estimate, too coarse for the slot time.
 */
export type SlotEventKind = "start" | "end" | "polled";

export interface SlotTime {
  /** Adds one accepted event. */
  add(kind: SlotEventKind, slot: number, nowNs: number): void;
  /** Forgets the position, not the measurements. */
  restart(): void;
  /** In milliseconds; null until enough slots were seen. */
  readonly ms: number | null;
}

/** Starts more slots apart say little about one slot's time. */
const GAP_SLOTS_MAX = 8;
/** Starts that arrive at a shorter distance, in milliseconds, were reported several at once. */
const BUNCHED_MS = 4;
/** Polled slots must be this far apart: the poll's period is then a small part of the span. */
const POLLED_SPAN_SLOTS = 32;
/** Polled spans kept for the median: half of them suffice to show a new slot time. */
const POLLED_SPANS_KEPT = 7;
/** Samples required before the median is used. */
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
      // An overloaded node reports several at once. Only the first of them counts: from it to the
      // first of the next ones is a true span.
      if (kind === "start" && !first && gap <= gapMax && spanMs < gap * BUNCHED_MS) return;
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
