/**
 * How far slots pass by the wall clock, where the cluster may stand still.
 *
 * Slots pass without an event while a leader skips them, so a position advances by the clock, but
 * not past the end of the next leader's window until a source reports a new slot. After seven slots
 * without any event the cluster stands still, and the position is the slot announced last. A poll
 * that repeats its slot is no event here, nor is a source that reports what others have reported;
 * an event below its source's own position is, because it shows nothing about the cluster. When
 * slots go on, those sources that have not reported it yet continue from where they stood.
 *
 *   S   S+1 … S+3 │ S+4 … S+6 │ S …      no event after S, the first slot of a window
 *   by the clock ─────────────┘ stands still
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_AGREE_DISTANCE } from "../core/limits.ts";
import {
  LEADER_WINDOW_SLOTS,
  SLOT_EXTRAPOLATION_MAX,
  SLOT_STILL_AHEAD_MS,
  SLOT_STILL_SLOTS,
} from "./limits.ts";
import { SlotPace } from "./slot-pace.ts";
import type { SlotSourceEstimate } from "./slot-source.ts";

export class Standstill {
  readonly #pace: SlotPace;
  /** When a source last reported a slot that none had reported before. */
  #progressNs = Number.NEGATIVE_INFINITY;
  /** When an event last left it open whether the cluster stands still. */
  #eventNs = Number.NEGATIVE_INFINITY;
  /** The last progress before the last standstill, and the first after it. */
  #beforeNs = Number.NEGATIVE_INFINITY;
  #resumedNs = Number.NEGATIVE_INFINITY;

  constructor(pace: SlotPace = new SlotPace()) {
    this.#pace = pace;
  }

  progressed(nowNs: number, slotDurationMs: number): void {
    if (this.isStill(nowNs, slotDurationMs)) {
      this.#beforeNs = this.#progressNs;
      this.#resumedNs = nowNs;
    }
    this.#progressNs = nowNs;
    this.#eventNs = nowNs;
  }

  observed(nowNs: number): void {
    this.#eventNs = nowNs;
  }

  isStill(nowNs: number, slotDurationMs: number): boolean {
    return !this.#pace.isByClock && nowNs >= this.stillNs(slotDurationMs);
  }

  /** When the cluster counts as standing still, without a further event. */
  stillNs(slotDurationMs: number): number {
    const stillMs = Math.min(
      SLOT_STILL_SLOTS * slotDurationMs,
      SLOT_AGREE_DISTANCE * slotDurationMs + SLOT_STILL_AHEAD_MS,
    );
    return this.#eventNs + stillMs * NS_PER_MS;
  }

  /** The time since then, without that in which the cluster stood still. */
  passedNs(sinceNs: number, nowNs: number, slotDurationMs: number): number {
    if (this.#pace.isByClock) return Math.max(0, nowNs - sinceNs);
    const untilNs = Math.min(nowNs, this.stillNs(slotDurationMs));
    return Math.max(0, untilNs - sinceNs - this.#stoodNs(sinceNs));
  }

  /** The position of a source; null before its first event and after too long a silence. */
  position(source: SlotSourceEstimate, nowNs: number, slotDurationMs: number): number | null {
    const position = source.position(nowNs, slotDurationMs);
    if (position === null || this.#pace.isByClock) return position;
    const stoodNs = this.#stoodNs(source.progressNs ?? nowNs);
    const at = (atNs: number) => source.position(atNs - stoodNs, slotDurationMs) ?? 0;
    const byClock = at(nowNs);
    const shown = at(Math.min(nowNs, this.#progressNs));
    if (this.isStill(nowNs, slotDurationMs)) return Math.min(byClock, shown);
    return Math.min(byClock, windowsEnd(shown));
  }

  /** When a source's position changes from `slot`, the one at `nowNs`. */
  changeNs(source: SlotSourceEstimate, slot: number, nowNs: number, slotMs: number): number {
    const { isByClock } = this.#pace;
    const stoodNs = isByClock ? 0 : this.#stoodNs(source.progressNs ?? nowNs);
    const startNs = source.startNs(slot + 1, slotMs) + stoodNs;
    if (startNs > nowNs || isByClock) return startNs;
    if (!this.isStill(nowNs, slotMs)) return this.stillNs(slotMs);
    return source.startNs(source.anchorSlot + SLOT_EXTRAPOLATION_MAX + 1, slotMs);
  }

  /** For how long the cluster has stood still since then, once slots went on. */
  #stoodNs(sinceNs: number): number {
    return Math.max(0, this.#resumedNs - Math.max(sinceNs, this.#beforeNs));
  }
}

/** The last slot of the window after that of `slot`. */
function windowsEnd(slot: number): number {
  return (Math.floor(slot / LEADER_WINDOW_SLOTS) + 2) * LEADER_WINDOW_SLOTS - 1;
}
