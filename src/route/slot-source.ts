/**
 * Where one source of slot events says that the cluster is.
 *
 * The last 48 events vote. The median event, plus as many slots as there are events above it or as
 * can have passed since half of them came, is how far the newest one is expected to be, and
 * whatever lies more than 48 slots beyond that is a lie or a mistake. The highest event that
 * remains is the anchor. From there the position goes on by the wall clock: a leader that skips
 * its slots is silent, and still they pass. The anchor never goes back, except when nothing
 * confirmed it for more than 48 slots and the source then makes progress below it: it was away, or
 * the cluster was started anew from an older slot.
 *
 * The rule is that of Agave's tpu-client-next (`recent_leader_slots.rs`, 4.3, checked 2026-11), but
 * for the time that passed.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_TIME_MS_MIN } from "../core/limits.ts";
import { LastValues } from "./last-values.ts";
import { SLOT_EVENTS_KEPT, SLOT_EXTRAPOLATION_MAX, SLOT_SKIP_DISTANCE } from "./limits.ts";
import { createSlotTime, type SlotEventKind } from "./slot-time.ts";

/** By how much the network may be faster than was measured. */
const FASTER_MOST = 2;

export class SlotSourceEstimate {
  /** The slots that the last events speak for. */
  readonly #history = new LastValues(SLOT_EVENTS_KEPT);
  /** When they came, the latest at the end. */
  readonly #times = new LastValues(SLOT_EVENTS_KEPT);
  readonly #time = createSlotTime();
  /** The highest slot that events speak for, and when it began. */
  #anchorSlot = -1;
  #anchorNs = 0;
  #lastEventNs: number | null = null;
  /** Whether the anchor has stood still for so long that the next progress replaces it. */
  #returning = false;
  #returnSlot = -1;
  #returns = 0;
  #steps = 0;

  /** When the last event came; null before the first. */
  get lastEventNs(): number | null {
    return this.#lastEventNs;
  }

  /** When an event last made progress; null before the first. */
  get progressNs(): number | null {
    return this.#anchorSlot < 0 ? null : this.#anchorNs;
  }

  /** The highest slot that its events speak for; -1 before the first. */
  get anchorSlot(): number {
    return this.#anchorSlot;
  }

  /** How often it came back after a long silence, perhaps below where it was. */
  get returns(): number {
    return this.#returns;
  }

  /** How often it made progress since it began or came back. */
  get steps(): number {
    return this.#steps;
  }

  /** The slot time that it shows, in milliseconds; null until it is measured. */
  get slotTimeMs(): number | null {
    return this.#time.ms;
  }

  /** Takes in an event; false when it is too far ahead. `paceMs`: the slot time to go on by. */
  observe(kind: SlotEventKind, slot: number, nowNs: number, slotDurationMs: number): boolean {
    this.#lastEventNs = nowNs;
    const quiet =
      this.#anchorSlot >= 0 && this.#extrapolated(nowNs, slotDurationMs) > SLOT_SKIP_DISTANCE;
    if (quiet && !this.#returning) this.#startReturn();
    this.#history.push(kind === "end" ? slot + 1 : slot);
    this.#times.push(nowNs);
    // Of one who is asked rarely, many slots pass between two events, and more in a network that
    // became faster: what is not believed would not tell of that either.
    const shortestNs = (slotDurationMs / FASTER_MOST) * NS_PER_MS;
    const passed = (nowNs - this.#times.at(this.#times.middle)) / shortestNs;
    const highest = highestPlausible(this.#history, passed, this.#reach(nowNs));
    if (highest >= 0) this.#accept(highest, nowNs);
    // What is not believed must not set the measure either.
    if (slot <= this.#anchorSlot) this.#time.add(kind, slot, nowNs);
    return slot <= highest;
  }

  /** The slot in progress by this source; null before the first and after too long a silence. */
  position(nowNs: number, slotDurationMs: number): number | null {
    if (this.#anchorSlot < 0) return null;
    const ahead = this.#extrapolated(nowNs, slotDurationMs);
    return ahead > SLOT_EXTRAPOLATION_MAX ? null : this.#anchorSlot + ahead;
  }

  /** When a slot begins, at this pace. */
  startNs(slot: number, slotDurationMs: number): number {
    return this.#anchorNs + (slot - this.#anchorSlot) * slotDurationMs * NS_PER_MS;
  }

  /** Slots that passed by the wall clock since the anchor. */
  #extrapolated(nowNs: number, slotDurationMs: number): number {
    return Math.max(0, Math.floor((nowNs - this.#anchorNs) / (slotDurationMs * NS_PER_MS)));
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

  #accept(highest: number, nowNs: number): void {
    if (this.#returning) this.#tryReturn(highest, nowNs);
    else if (highest > this.#anchorSlot) this.#anchorAt(highest, nowNs);
  }

  #anchorAt(slot: number, nowNs: number): void {
    this.#anchorSlot = slot;
    this.#anchorNs = nowNs;
    this.#steps += 1;
  }

  /** The past has no vote any more, but for how far ahead anything can be. */
  #startReturn(): void {
    this.#returning = true;
    this.#returnSlot = -1;
    this.#history.clear();
    this.#times.clear();
    this.#time.restart();
  }

  /** A node that repeats one old slot is stuck; one that makes progress somewhere else is right. */
  #tryReturn(highest: number, nowNs: number): void {
    const below = this.#returnSlot >= 0 && highest > this.#returnSlot;
    if (highest <= this.#anchorSlot && !below) {
      this.#returnSlot = Math.max(this.#returnSlot, highest);
      return;
    }
    this.#returning = false;
    this.#returns += 1;
    this.#steps = 0;
    this.#anchorAt(highest, nowNs);
  }
}

/**
 * The highest of the slots that events speak for that others lead one to expect and that is in
 * reach; -1 for none. `passed`: slots that can have passed since half of them came.
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
