/**
 * The cluster's slot according to one source of slot events.
 *
 * The last 48 events vote. The expected newest slot is the median event, plus the number of events
 * above it or the slots that can have passed since half of them arrived; anything more than 48
 * slots beyond that is rejected. The highest remaining event is the anchor. From there the position
 * advances by the wall clock, because slots pass even while a leader skips them silently. The
 * anchor goes back in two cases: when no event confirmed it for more than 48 slots and the source
 * then makes progress below it, as after an absence; and when the source's events ascend from below
 * in a row, none of them above the anchor, as when the cluster uses slot numbers again.
 *
 * The rule is that of Agave's tpu-client-next (`recent_leader_slots.rs`, 4.3, checked 2026-11),
 * except for the elapsed time.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_AGREE_DISTANCE, SLOT_TIME_MS_MIN } from "../core/limits.ts";
import { LastValues } from "./last-values.ts";
import { SLOT_EVENTS_KEPT, SLOT_EXTRAPOLATION_MAX, SLOT_SKIP_DISTANCE } from "./limits.ts";
import type { SlotPace } from "./slot-pace.ts";
import { SlotRun } from "./slot-run.ts";
import { createSlotTime, type SlotEventKind } from "./slot-time.ts";

/** How much faster than measured the network may be. */
const FASTER_MOST = 2;

/** A source's step back to events that ascend from below. */
export interface SlotBack {
  /** When the first of these events arrived, and when they sufficed. */
  readonly sinceNs: number;
  readonly atNs: number;
  /** The highest slot that had begun before. */
  readonly fromSlot: number;
}

export class SlotSourceEstimate {
  /** The slots of the last events. */
  readonly #history = new LastValues(SLOT_EVENTS_KEPT);
  /** Their arrival times, the latest last. */
  readonly #times = new LastValues(SLOT_EVENTS_KEPT);
  readonly #time = createSlotTime();
  /** The highest accepted slot and when it began. */
  #anchorSlot = -1;
  #anchorNs = 0;
  /** Whether the anchor has begun; otherwise only the slot before it has ended. */
  #hasBegun = true;
  #lastEventNs: number | null = null;
  /** The slot of the last event; -1 before the first. */
  #lastSlot = -1;
  /** Its events below the anchor. */
  readonly #run: SlotRun;
  /** Whether the anchor stood still so long that the next progress replaces it. */
  #returning = false;
  #returnSlot = -1;
  #returns = 0;
  #back: SlotBack | null = null;
  #steps = 0;

  constructor(pace?: SlotPace) {
    this.#run = new SlotRun(pace);
  }

  /** When the last event arrived; null before the first. */
  get lastEventNs(): number | null {
    return this.#lastEventNs;
  }

  /** When an event last made progress; null before the first. */
  get progressNs(): number | null {
    return this.#anchorSlot < 0 ? null : this.#anchorNs;
  }

  /** The highest slot of its events; -1 before the first. */
  get anchorSlot(): number {
    return this.#anchorSlot;
  }

  /** The highest slot that has begun: of the anchor, the end of the one before may be reported. */
  get begunSlot(): number {
    return this.#hasBegun ? this.#anchorSlot : this.#anchorSlot - 1;
  }

  /** The slot in progress by its last event; -1 before the first. */
  get lastSlot(): number {
    return this.#lastSlot;
  }

  /** How often it returned, after a long silence or to lower slots. */
  get returns(): number {
    return this.#returns;
  }

  /** How it last went back by events that ascend from below; null if it never did. */
  get back(): SlotBack | null {
    return this.#back;
  }

  /** The mean time between its last events; null before the second. */
  get gapNs(): number | null {
    const { count } = this.#times;
    return count < 2 ? null : (this.#times.at(count - 1) - this.#times.at(0)) / (count - 1);
  }

  /** Progress events since it began or returned. */
  get steps(): number {
    return this.#steps;
  }

  /** The slot time it shows, in milliseconds; null until measured. */
  get slotTimeMs(): number | null {
    return this.#time.ms;
  }

  /**
   * Processes an event; false if too far ahead. `slotDurationMs`: the slot time for extrapolation.
   */
  observe(kind: SlotEventKind, slot: number, nowNs: number, slotDurationMs: number): boolean {
    const shown = kind === "end" ? slot + 1 : slot;
    this.#lastEventNs = nowNs;
    this.#lastSlot = shown;
    if (this.#ascendsFromBelow(kind, shown, nowNs, slotDurationMs)) this.#goBack(shown, nowNs);
    const quiet =
      this.#anchorSlot >= 0 && this.#extrapolated(nowNs, slotDurationMs) > SLOT_SKIP_DISTANCE;
    if (quiet && !this.#returning) this.#startReturn();
    this.#history.push(shown);
    this.#times.push(nowNs);
    // A rarely polled source skips many slots between two events, more if the network became
    // faster: rejected events would hide that.
    const shortestNs = (slotDurationMs / FASTER_MOST) * NS_PER_MS;
    const passed = (nowNs - this.#times.at(this.#times.middle)) / shortestNs;
    const highest = highestPlausible(this.#history, passed, this.#reach(nowNs));
    const isNew = shown !== this.#anchorSlot;
    if (highest >= 0) this.#accept(highest, nowNs);
    // A rejected event must not affect the slot time either.
    if (slot <= this.#anchorSlot) this.#time.add(kind, slot, nowNs);
    if (shown === this.#anchorSlot) this.#hasBegun = kind !== "end" || (this.#hasBegun && !isNew);
    return slot <= highest;
  }

  /** The current slot by this source; null before the first and after too long a silence. */
  position(nowNs: number, slotDurationMs: number): number | null {
    if (this.#anchorSlot < 0) return null;
    const ahead = this.#extrapolated(nowNs, slotDurationMs);
    return ahead > SLOT_EXTRAPOLATION_MAX ? null : this.#anchorSlot + ahead;
  }

  /** When a slot begins at this pace. */
  startNs(slot: number, slotDurationMs: number): number {
    return this.#anchorNs + (slot - this.#anchorSlot) * slotDurationMs * NS_PER_MS;
  }

  /** Whether it reports lower slots regularly, as it lags in a part of its events. */
  isMixed(nowNs: number): boolean {
    return this.#run.isMixed(nowNs);
  }

  /** An invalid event arrived: a source that sends such is not followed to lower slots soon. */
  interrupt(): void {
    this.#run.reset();
  }

  /** Whether this event completes a run of events that ascend from below the position. */
  #ascendsFromBelow(
    kind: SlotEventKind,
    slot: number,
    nowNs: number,
    slotDurationMs: number,
  ): boolean {
    if (slot > this.#anchorSlot) {
      if (this.#anchorSlot - this.#run.slot > SLOT_AGREE_DISTANCE) this.#run.refute(nowNs);
      else this.#run.reset();
      return false;
    }
    const suffices = this.#run.add(slot, nowNs, slotDurationMs, kind === "polled");
    const position = this.#anchorSlot + this.#extrapolated(nowNs, slotDurationMs);
    return suffices && position - slot > SLOT_AGREE_DISTANCE;
  }

  /** Slots that passed by the wall clock since the anchor. */
  #extrapolated(nowNs: number, slotDurationMs: number): number {
    return Math.max(0, Math.floor((nowNs - this.#anchorNs) / (slotDurationMs * NS_PER_MS)));
  }

  /**
   * No slot is shorter than the minimum, so hardly any correct slot is beyond this one: only a full
   * history can prove otherwise.
   */
  #reach(nowNs: number): number {
    if (this.#anchorSlot < 0 || this.#history.full) return Number.MAX_SAFE_INTEGER;
    const elapsed = Math.max(0, nowNs - this.#anchorNs) / (SLOT_TIME_MS_MIN * NS_PER_MS);
    return this.#anchorSlot + Math.ceil(elapsed) + SLOT_SKIP_DISTANCE;
  }

  #accept(highest: number, nowNs: number): void {
    if (this.#returning) this.#tryReturn(highest, nowNs);
    else if (highest > this.#anchorSlot) this.#anchorAt(highest, nowNs);
  }

  #anchorAt(slot: number, nowNs: number): void {
    this.#anchorSlot = slot;
    this.#anchorNs = nowNs;
    this.#steps += 1;
  }

  /** Continues from this slot, although it is lower. */
  #goBack(slot: number, nowNs: number): void {
    this.#back = { sinceNs: this.#run.sinceNs, atNs: nowNs, fromSlot: this.begunSlot };
    this.#startReturn();
    this.#return(slot, nowNs);
  }

  /** Past events lose their vote, except as a limit on how far ahead a slot can be. */
  #startReturn(): void {
    this.#returning = true;
    this.#returnSlot = -1;
    this.#history.clear();
    this.#times.clear();
    this.#time.restart();
  }

  /**
   * A node that repeats one old slot is stuck; one that progresses at another position is right.
   */
  #tryReturn(highest: number, nowNs: number): void {
    const below = this.#returnSlot >= 0 && highest > this.#returnSlot;
    if (highest <= this.#anchorSlot && !below) {
      this.#returnSlot = Math.max(this.#returnSlot, highest);
      return;
    }
    this.#return(highest, nowNs);
  }

  #return(slot: number, nowNs: number): void {
    this.#returning = false;
    this.#returns += 1;
    this.#steps = 0;
    this.#anchorAt(slot, nowNs);
  }
}

/**
 * The highest slot of the events that is plausible by the others and in reach; -1 for none.
 * `passed`: slots that can have passed since half of them arrived.
 */
function highestPlausible(history: LastValues, passed: number, reach: number): number {
  const { count, middle } = history;
  const above = Math.max(count - 1 - middle, Math.floor(passed));
  const expected = Math.max(0, history.at(middle)) + above;
  const limit = Math.min(expected + SLOT_SKIP_DISTANCE, reach);
  let place = count - 1;
  while (place >= 0 && history.at(place) > limit) place -= 1;
  return history.at(place);
}
