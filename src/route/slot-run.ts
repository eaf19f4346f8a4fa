/**
 * Events that ascend in a row at a cluster's pace: evidence that slots go on from a lower one.
 *
 * A slot counts once, and only some time after the one before: a node that repairs old slots
 * reports many at the same time. A late event and a repetition change nothing; a jump begins a new
 * run. A run suffices after 0.6 s and three slots, so it is followed within a second; where the
 * cluster is likely to go back, two slots in 0.15 s do.
 */

import { NS_PER_MS } from "../core/clock.ts";
import {
  SLOT_RUN_LATE,
  SLOT_RUN_LIKELY_MS,
  SLOT_RUN_LIKELY_SLOTS,
  SLOT_RUN_MS,
  SLOT_RUN_SLOTS,
  SLOT_RUN_STEP_MAX,
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
  readonly #pace: SlotPace;

  constructor(pace: SlotPace = new SlotPace()) {
    this.#pace = pace;
  }

  /** When the run began. */
  get sinceNs(): number {
    return this.#sinceNs;
  }

  /** Adds an event; returns whether the run suffices. */
  add(slot: number, nowNs: number, slotDurationMs: number): boolean {
    const step = slot - this.#slot;
    if (this.#slot < 0 || step < -SLOT_RUN_LATE || step > SLOT_RUN_STEP_MAX) {
      this.#sinceNs = nowNs;
      this.#slot = slot;
      this.#count = 1;
      this.#countedNs = nowNs;
      return false;
    }
    if (step <= 0) return false;
    this.#slot = slot;
    if (nowNs - this.#countedNs >= PACE * slotDurationMs * NS_PER_MS) {
      this.#count += 1;
      this.#countedNs = nowNs;
    }
    const { isByClock, isBackLikely } = this.#pace;
    const [slotsMin, runMs] = isBackLikely
      ? [SLOT_RUN_LIKELY_SLOTS, SLOT_RUN_LIKELY_MS]
      : [SLOT_RUN_SLOTS, SLOT_RUN_MS];
    return !isByClock && this.#count >= slotsMin && nowNs - this.#sinceNs >= runMs * NS_PER_MS;
  }

  reset(): void {
    this.#slot = -1;
  }
}
