/**
 * How far slots pass by the wall clock, where the cluster may stand still.
 *
 * Slots pass without an event while a leader skips them, so a position advances by the clock, but
 * not past the end of the next leader's window until a source reports a new slot. After seven slots
 * without any event it is in doubt, and waits four slots after the one announced last: right enough
 * both for a cluster that stands still and for one that skips two windows in a row. After ten the
 * cluster stands still, and the position is the slot announced last. A poll that repeats its slot
 * is no event here, nor is a source that reports what others have reported; an event below the
 * position of its own source is, because it shows nothing about the cluster.
 *
 *   S   S+1 … S+3 │ S+4 … S+6 │ S+4 …     │ S …      no event after S, the first of a window
 *   by the clock ─────────────┘ in doubt  └ stands still
 *
 * All sources share the cluster's time, which is the wall clock's without what a standstill took:
 * between two new slots hardly more passes than their distance. So a source that has not reported
 * the newest slots yet continues from where it stood.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_AGREE_DISTANCE } from "../core/limits.ts";
import {
  LEADER_WINDOW_SLOTS,
  SLOT_DOUBT_AHEAD_MS,
  SLOT_DOUBT_SLOTS,
  SLOT_EXTRAPOLATION_MAX,
  SLOT_STILL_SLOTS,
} from "./limits.ts";
import { SlotPace } from "./slot-pace.ts";
import type { SlotSourceEstimate } from "./slot-source.ts";

/** The part of an event's earliness that the next one may use. */
const EARLY_KEPT = 7 / 8;

export class Standstill {
  readonly #pace: SlotPace;
  /** When a source last reported a slot that none had reported before, and the cluster's time. */
  #progressNs: number | null = null;
  #timeNs = 0;
  /** The cluster's time by the slots that were reported. */
  #timeMaxNs = 0;
  /** When an event last left it open whether the cluster stands still. */
  #eventNs = 0;

  constructor(pace: SlotPace = new SlotPace()) {
    this.#pace = pace;
  }

  /** A source reports a slot that none had reported before, `slots` after the highest of these. */
  progressed(nowNs: number, slotDurationMs: number, slots = 1): void {
    if (this.#progressNs !== null) {
      const slotNs = slotDurationMs * NS_PER_MS;
      const byClockNs = this.#timeNs + nowNs - this.#progressNs;
      const byEventsNs = this.#timeMaxNs + slots * slotNs;
      this.#timeNs = this.#pace.isByClock ? byClockNs : Math.min(byClockNs, byEventsNs);
      // The next events may be as late as this one was early: jitter of a slot at most.
      const earlyNs = Math.min(slotNs, Math.max(0, byEventsNs - this.#timeNs));
      this.#timeMaxNs = this.#timeNs + earlyNs * EARLY_KEPT;
    }
    this.#progressNs = nowNs;
    this.#eventNs = nowNs;
  }

  observed(nowNs: number): void {
    this.#eventNs = nowNs;
  }

  /** Whether slots may not pass any more: the position may go back to what is certain. */
  isInDoubt(nowNs: number, slotDurationMs: number): boolean {
    return !this.#pace.isByClock && nowNs >= this.#doubtNs(slotDurationMs);
  }

  isStill(nowNs: number, slotDurationMs: number): boolean {
    return !this.#pace.isByClock && nowNs >= this.stillNs(slotDurationMs);
  }

  /** When the cluster counts as standing still, without a further event. */
  stillNs(slotDurationMs: number): number {
    return this.#eventNs + SLOT_STILL_SLOTS * slotDurationMs * NS_PER_MS;
  }

  /** The cluster's time. */
  timeNs(nowNs: number, slotDurationMs: number): number {
    const passedNs = nowNs - (this.#progressNs ?? nowNs);
    if (!this.isInDoubt(nowNs, slotDurationMs)) return this.#timeNs + passedNs;
    const slots = this.isStill(nowNs, slotDurationMs) ? 0 : SLOT_AGREE_DISTANCE;
    return this.#timeNs + Math.min(passedNs, slots * slotDurationMs * NS_PER_MS);
  }

  /**
   * The position of a source that made its last progress at `sinceNs` of the cluster's time; null
   * before its first event and after too long a silence.
   */
  position(
    source: SlotSourceEstimate,
    sinceNs: number,
    nowNs: number,
    slotMs: number,
  ): number | null {
    const position = source.position(nowNs, slotMs);
    if (position === null || this.#pace.isByClock) return position;
    const shown = slotAt(source, this.#timeNs - sinceNs, slotMs);
    if (this.isStill(nowNs, slotMs)) return shown;
    const passedNs = nowNs - (this.#progressNs ?? nowNs);
    const byClock = slotAt(source, this.#timeNs + passedNs - sinceNs, slotMs);
    if (!this.isInDoubt(nowNs, slotMs)) return Math.min(byClock, windowsEnd(shown));
    const isBegun = source.begunSlot === source.anchorSlot;
    return Math.min(byClock, shown + SLOT_AGREE_DISTANCE - (isBegun ? 0 : 1));
  }

  /** When a source's position changes from `slot`, the one at `nowNs`. */
  changeNs(
    source: SlotSourceEstimate,
    sinceNs: number,
    slot: number,
    nowNs: number,
    slotMs: number,
  ): number {
    if (this.#pace.isByClock) return source.startNs(slot + 1, slotMs);
    if (this.isStill(nowNs, slotMs)) {
      return source.startNs(source.anchorSlot + SLOT_EXTRAPOLATION_MAX + 1, slotMs);
    }
    if (this.isInDoubt(nowNs, slotMs)) return this.stillNs(slotMs);
    const leftNs = (slot + 1 - source.anchorSlot) * slotMs * NS_PER_MS - (this.#timeNs - sinceNs);
    const startNs = (this.#progressNs ?? nowNs) + leftNs;
    return startNs > nowNs ? startNs : this.#doubtNs(slotMs);
  }

  #doubtNs(slotDurationMs: number): number {
    const doubtMs = Math.min(
      SLOT_DOUBT_SLOTS * slotDurationMs,
      SLOT_AGREE_DISTANCE * slotDurationMs + SLOT_DOUBT_AHEAD_MS,
    );
    return this.#eventNs + doubtMs * NS_PER_MS;
  }
}

/** A source's slot when this time has passed since its last progress. */
function slotAt(source: SlotSourceEstimate, passedNs: number, slotDurationMs: number): number {
  return source.anchorSlot + Math.max(0, Math.floor(passedNs / (slotDurationMs * NS_PER_MS)));
}

/** The last slot of the window after that of `slot`. */
function windowsEnd(slot: number): number {
  return (Math.floor(slot / LEADER_WINDOW_SLOTS) + 2) * LEADER_WINDOW_SLOTS - 1;
}
