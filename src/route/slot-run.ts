/**
 * Events that ascend in a row at a cluster's pace: evidence that slots go on from a lower one.
 *
 * A slot counts once, and only some time after the one before: a node that repairs old slots
 * reports many at the same time. A late event and a repetition change nothing; a jump begins a new
 * run. A run suffices after 0.6 s and three slots, so it is followed within a second; where the
 * cluster is likely to go back, two slots in 0.15 s do, and of polls two answers.
 *
 * Of a mixed source, whose runs are again and again followed by higher slots, a run has to be as
 * long as a standstill, and one that continues those before never suffices: a node whose replay
 * lags reports each slot a second time, and goes on with that while windows are skipped or the
 * cluster stands still.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_AGREE_DISTANCE } from "../core/limits.ts";
import {
  SLOT_RUN_LATE,
  SLOT_RUN_LIKELY_MS,
  SLOT_RUN_LIKELY_SLOTS,
  SLOT_RUN_MIXED_MS,
  SLOT_RUN_MS,
  SLOT_RUN_POLLED_MS,
  SLOT_RUN_POLLED_SLOTS,
  SLOT_RUN_SLOTS,
  SLOT_RUN_STEP_MAX,
  SLOT_STILL_SLOTS,
} from "./limits.ts";
import { SlotPace } from "./slot-pace.ts";

/** The part of a slot time that has to pass between two slots that count. */
const PACE = 0.4;

export class SlotRun {
  #sinceNs = 0;
  /** The highest slot of the run; -1 without one. */
  #slot = -1;
  /** Slots that count, and when the last one did. */
  #count = 0;
  #countedNs = 0;
  /** Whether it continues runs that were refuted. */
  #isLate = false;
  /** When the last two runs were refuted, the latest first, and the latest one's slot. */
  #refutedNs = Number.NEGATIVE_INFINITY;
  #refutedSlot = -1;
  #refutedBeforeNs = Number.NEGATIVE_INFINITY;
  readonly #pace: SlotPace;

  constructor(pace: SlotPace = new SlotPace()) {
    this.#pace = pace;
  }

  /** When the run began. */
  get sinceNs(): number {
    return this.#sinceNs;
  }

  /** Its highest slot; -1 without a run. */
  get slot(): number {
    return this.#slot;
  }

  /** Adds an event; returns whether the run suffices. */
  add(slot: number, nowNs: number, slotDurationMs: number, isPolled = false): boolean {
    const step = slot - this.#slot;
    const slotNs = slotDurationMs * NS_PER_MS;
    // A poll skips the slots since the one before.
    const stepMax = SLOT_RUN_STEP_MAX + (isPolled ? (nowNs - this.#countedNs) / slotNs : 0);
    if (this.#slot < 0 || step < -SLOT_RUN_LATE || step > stepMax) {
      this.#begin(slot, nowNs, slotDurationMs);
      return false;
    }
    if (step <= 0) return false;
    this.#slot = slot;
    if (nowNs - this.#countedNs >= PACE * slotNs) {
      this.#count += 1;
      this.#countedNs = nowNs;
    }
    if (this.#pace.isByClock || this.#isLate) return false;
    const [slotsMin, runMs] = this.#needed(nowNs, slotDurationMs, isPolled);
    return this.#count >= slotsMin && nowNs - this.#sinceNs >= runMs * NS_PER_MS;
  }

  reset(): void {
    this.#slot = -1;
  }

  /** A higher slot follows the run, if there is one. */
  refute(nowNs: number): void {
    if (this.#slot < 0) return;
    this.#refutedSlot = this.#slot;
    this.#slot = -1;
    this.#refutedBeforeNs = this.#refutedNs;
    this.#refutedNs = nowNs;
  }

  /** Whether its source is one whose runs were followed by higher slots. */
  isMixed(nowNs: number): boolean {
    return nowNs - this.#refutedBeforeNs <= SLOT_RUN_MIXED_MS * NS_PER_MS;
  }

  #begin(slot: number, nowNs: number, slotDurationMs: number): void {
    this.#sinceNs = nowNs;
    this.#slot = slot;
    this.#count = 1;
    this.#countedNs = nowNs;
    const passed = (nowNs - this.#refutedNs) / (slotDurationMs * NS_PER_MS);
    const isNear = Math.abs(slot - this.#refutedSlot - passed) <= SLOT_AGREE_DISTANCE;
    this.#isLate = this.isMixed(nowNs) && isNear;
  }

  /** The slots and milliseconds from which on a run suffices. */
  #needed(nowNs: number, slotDurationMs: number, isPolled: boolean): readonly [number, number] {
    if (this.isMixed(nowNs)) return [SLOT_RUN_SLOTS, SLOT_STILL_SLOTS * slotDurationMs];
    if (this.#pace.isBackLikely) return [SLOT_RUN_LIKELY_SLOTS, SLOT_RUN_LIKELY_MS];
    if (isPolled) return [SLOT_RUN_POLLED_SLOTS, SLOT_RUN_POLLED_MS];
    return [SLOT_RUN_SLOTS, SLOT_RUN_MS];
  }
}
