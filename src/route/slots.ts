/**
 * The estimate of the current slot.
 *
 * Events say that a slot started or ended; the last 48 of them vote. The median event, plus as many
 * slots as there are events above it, is where the newest one is expected to be, and whatever lies
 * more than 48 slots beyond that is a lie or a mistake. The highest event that remains gives the
 * slot. Between events time itself goes on: a leader that skips its slots is silent, and still they
 * pass, so the estimate coasts on the measured slot time. The number given out never goes back,
 * except when nothing confirmed it for more than 48 slots and the feed then makes progress below
 * it: a feed that was away, or a cluster that was started anew from an older slot.
 *
 *   events ──▶ last 48 ──▶ anchor (slot, when it began) ──▶ + wall clock ──▶ current
 *
 * The rule is that of Agave's tpu-client-next (`recent_leader_slots.rs`, 4.3, checked 2026-11).
 */

import { NS_PER_MS } from "../core/clock.ts";
import {
  SLOT_COAST_MAX,
  SLOT_EVENTS_KEPT,
  SLOT_SKIP_DISTANCE,
  SLOT_TIME_MS_MAX,
  SLOT_TIME_MS_MIN,
} from "../core/limits.ts";
import { createRouteCounters, type RouteCounters } from "./counters.ts";

/**
 * `start`: the first sign of a slot was seen. `end`: the slot is complete. `polled`: somebody was
 * asked for the slot in progress; as good as a start for the estimate, too coarse for slot time.
 */
export type SlotEventKind = "start" | "end" | "polled";

export interface SlotClock {
  /** Takes in one event; never throws. `nowNs` is when it arrived. */
  observe(kind: SlotEventKind, slot: number, nowNs: number): void;
  /** The slot in progress; null before the first event and when the last one is too long ago. */
  current(nowNs: number): number | null;
  /** When the slot after the current one is expected, on `Clock.nowNs`; null with no current. */
  nextSlotNs(nowNs: number): number | null;
  /** The measured slot time in milliseconds; the default until enough slots were seen. */
  readonly slotTimeMs: number;
  /** When the last usable event arrived; null before the first. */
  readonly lastEventNs: number | null;
}

export interface SlotClockOptions {
  /** Slot time until it is measured. SIMD-0525's step live on mainnet in 2026-09: 250 ms. */
  readonly slotTimeMsDefault: number;
}

const DEFAULTS: SlotClockOptions = { slotTimeMsDefault: 250 };
/** Starts more slots apart than this say little about the time of one. */
const GAP_SLOTS_MAX = 8;
/** Polled slots must be this far apart: the poll's period is then a small part of the span. */
const POLLED_SPAN_SLOTS = 32;
/** Slot times seen before their median is believed. */
const SAMPLES_MIN = 4;

export function createSlotClock(
  options: Partial<SlotClockOptions> = {},
  counters: RouteCounters = createRouteCounters(),
): SlotClock {
  return new Estimate({ ...DEFAULTS, ...options }, counters);
}

class Estimate implements SlotClock {
  readonly #counters: RouteCounters;
  readonly #history = createHistory();
  readonly #measure = createSlotTime();
  #slotTimeMs: number;
  #lastEventNs: number | null = null;
  /** The highest slot that events speak for, and when it began. */
  #anchorSlot = -1;
  #anchorNs = 0;
  /** The highest slot given out since the last rewind. */
  #publishedSlot = -1;
  /** Whether the anchor has stood still for so long that the next progress replaces it. */
  #returning = false;
  #returnSlot = -1;

  constructor(options: SlotClockOptions, counters: RouteCounters) {
    this.#slotTimeMs = options.slotTimeMsDefault;
    this.#counters = counters;
  }

  get slotTimeMs(): number {
    return this.#slotTimeMs;
  }

  get lastEventNs(): number | null {
    return this.#lastEventNs;
  }

  observe(kind: SlotEventKind, slot: number, nowNs: number): void {
    if (!Number.isSafeInteger(slot) || slot < 0) {
      this.#counters.slotEventsInvalid += 1;
      return;
    }
    this.#counters.slotEvents += 1;
    this.#lastEventNs = nowNs;
    const quiet = this.#anchorSlot >= 0 && this.#coasted(nowNs) > SLOT_SKIP_DISTANCE;
    if (quiet && !this.#returning) this.#beginReturn();
    this.#history.push(kind === "end" ? slot + 1 : slot);
    const highest = this.#history.highestPlausible(this.#reach(nowNs));
    if (slot > highest) this.#counters.slotEventsFarAhead += 1;
    if (highest >= 0) this.#believe(highest, nowNs);
    // What is not believed must not set the measure either.
    if (slot > this.#anchorSlot) return;
    this.#slotTimeMs = this.#measure.add(kind, slot, nowNs) ?? this.#slotTimeMs;
  }

  current(nowNs: number): number | null {
    if (this.#anchorSlot < 0) return null;
    const ahead = this.#coasted(nowNs);
    if (ahead > SLOT_COAST_MAX) return null;
    const slot = this.#anchorSlot + ahead;
    if (slot > this.#publishedSlot) {
      this.#counters.slotsCoasted += slot - this.#publishedSlot;
      this.#publishedSlot = slot;
    }
    return this.#publishedSlot;
  }

  nextSlotNs(nowNs: number): number | null {
    const slot = this.current(nowNs);
    if (slot === null) return null;
    return this.#anchorNs + (slot + 1 - this.#anchorSlot) * this.#slotTimeMs * NS_PER_MS;
  }

  /** Slots that passed by the wall clock since the anchor. */
  #coasted(nowNs: number): number {
    return Math.max(0, Math.floor((nowNs - this.#anchorNs) / (this.#slotTimeMs * NS_PER_MS)));
  }

  /**
   * No slot is shorter than the minimum, so hardly anything honest lies beyond this one: only a
   * full history can say otherwise.
   */
  #reach(nowNs: number): number {
    if (this.#anchorSlot < 0 || this.#history.full) return Number.MAX_SAFE_INTEGER;
    const elapsed = Math.max(0, nowNs - this.#anchorNs) / (SLOT_TIME_MS_MIN * NS_PER_MS);
    return this.#anchorSlot + Math.ceil(elapsed) + SLOT_SKIP_DISTANCE;
  }

  #believe(highest: number, nowNs: number): void {
    if (this.#returning) {
      this.#tryReturn(highest, nowNs);
      return;
    }
    if (highest > this.#anchorSlot) this.#anchorAt(highest, nowNs);
    this.#publishedSlot = Math.max(this.#publishedSlot, this.#anchorSlot);
  }

  #anchorAt(slot: number, nowNs: number): void {
    this.#anchorSlot = slot;
    this.#anchorNs = nowNs;
  }

  /** The past has no vote any more, but for how far ahead anything can be. */
  #beginReturn(): void {
    this.#returning = true;
    this.#returnSlot = -1;
    this.#history.clear();
    this.#measure.restart();
  }

  /** A node that repeats one old slot is stuck; one that makes progress somewhere else is right. */
  #tryReturn(highest: number, nowNs: number): void {
    const below = this.#returnSlot >= 0 && highest > this.#returnSlot;
    if (highest <= this.#anchorSlot && !below) {
      this.#returnSlot = Math.max(this.#returnSlot, highest);
      return;
    }
    this.#returning = false;
    if (highest < this.#publishedSlot) this.#counters.slotRewinds += 1;
    this.#anchorAt(highest, nowNs);
    this.#publishedSlot = highest;
  }
}

/** The last 48 events, as the slot each of them speaks for. */
function createHistory() {
  const ring = new Float64Array(SLOT_EVENTS_KEPT);
  let count = 0;
  let next = 0;
  return {
    get full(): boolean {
      return count === SLOT_EVENTS_KEPT;
    },
    push(slot: number): void {
      ring[next] = slot;
      next = (next + 1) % SLOT_EVENTS_KEPT;
      if (count < SLOT_EVENTS_KEPT) count += 1;
    },
    clear(): void {
      count = 0;
      next = 0;
    },
    /** The highest slot that others lead one to expect and that is in reach; -1 for none. */
    highestPlausible(reach: number): number {
      const sorted = ring.slice(0, count).sort();
      const middle = (count - 1) >> 1;
      const expected = (sorted[middle] ?? 0) + (count - 1 - middle);
      const limit = Math.min(expected + SLOT_SKIP_DISTANCE, reach);
      let index = count - 1;
      while (index >= 0 && (sorted[index] ?? 0) > limit) index -= 1;
      return sorted[index] ?? -1;
    },
  };
}

/** The median time of a slot, from the times between starts of slots that follow each other. */
function createSlotTime() {
  const samples = new Float64Array(SLOT_EVENTS_KEPT);
  let count = 0;
  let next = 0;
  let startSlot = -1;
  let startNs = 0;
  let polledSlot = -1;
  let polledNs = 0;

  function sample(ms: number): number | null {
    samples[next] = ms;
    next = (next + 1) % SLOT_EVENTS_KEPT;
    if (count < SLOT_EVENTS_KEPT) count += 1;
    if (count < SAMPLES_MIN) return null;
    const median = samples.slice(0, count).sort()[(count - 1) >> 1] ?? 0;
    return Math.min(SLOT_TIME_MS_MAX, Math.max(SLOT_TIME_MS_MIN, median));
  }

  function afterStart(slot: number, nowNs: number): number | null {
    const gap = slot - startSlot;
    if (startSlot >= 0 && gap <= 0) return null;
    const spanMs = (nowNs - startNs) / NS_PER_MS;
    const usable = startSlot >= 0 && gap <= GAP_SLOTS_MAX;
    startSlot = slot;
    startNs = nowNs;
    return usable ? sample(spanMs / gap) : null;
  }

  function afterPoll(slot: number, nowNs: number): number | null {
    const gap = slot - polledSlot;
    if (polledSlot >= 0 && gap < POLLED_SPAN_SLOTS) return null;
    const spanMs = (nowNs - polledNs) / NS_PER_MS;
    const usable = polledSlot >= 0;
    polledSlot = slot;
    polledNs = nowNs;
    return usable ? sample(spanMs / gap) : null;
  }

  return {
    /** Takes in one event; the new slot time in milliseconds, null where it says nothing new. */
    add(kind: SlotEventKind, slot: number, nowNs: number): number | null {
      if (kind === "start") return afterStart(slot, nowNs);
      return kind === "polled" ? afterPoll(slot, nowNs) : null;
    },
    /** Forgets where it was, not what it measured. */
    restart(): void {
      startSlot = -1;
      polledSlot = -1;
    },
  };
}
