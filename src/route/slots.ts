/**
 * The estimate of the current slot, from several sources of which any may stop or lie.
 *
 * Each source has a position of its own (`slot-source.ts`). Sources that are near each other agree;
 * the group with most votes counts, and its freshest member, the one furthest ahead, is followed.
 * A vote is an origin's, the node that a source speaks for, and its sources share it: however much
 * one node talks, it does not outvote another.
 * Where no group has more, inertia decides: what was believed goes on by the wall clock, and who
 * is nearest to that is right. So neither a jump nor a slow drift of one source pulls the estimate,
 * and one source alone is followed wherever it goes. Only whoever spoke first may have been a node
 * that lags: one that was ahead from the beginning, and goes on, is taken instead. The slot time
 * has the same inertia. The number given out never goes back, except after a source returned from a
 * long silence, or by more than 48 slots, which is no jitter but a mistake put right.
 *
 *   events ──▶ a position for each source ──▶ who agrees? ──▶ the freshest of them ──▶ current
 *
 * Decision: docs/decisions/0022-slot-sources-vote.md
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_AGREE_DISTANCE, SLOT_TIME_MS_MAX, SLOT_TIME_MS_MIN } from "../core/limits.ts";
import { createRouteCounters, type RouteCounters } from "./counters.ts";
import {
  SLOT_EXTRAPOLATION_MAX,
  SLOT_SETTLE_MS,
  SLOT_SKIP_DISTANCE,
  SLOT_SOURCE_LIVE_MS,
  SLOT_STEPS_MIN,
} from "./limits.ts";
import { createSlotLag, type SlotLag } from "./slot-lag.ts";
import { SlotPast } from "./slot-past.ts";
import { SlotSourceEstimate } from "./slot-source.ts";
import type { SlotEventKind } from "./slot-time.ts";

/** Where slot events come from; also a label of metrics. */
export const SLOT_SOURCES = ["grpc", "slotsUpdates", "slot", "polling"] as const;
export type SlotSource = (typeof SLOT_SOURCES)[number];

export interface SlotSourceStatus {
  readonly source: SlotSource;
  /** Time since its last event in milliseconds; null before the first. */
  readonly ageMs: number | null;
  /** How much later than the first source it tells of a slot, smoothed; null when it never did. */
  readonly lagMs: number | null;
  /** Whether the estimate is its now. */
  readonly followed: boolean;
}

export interface SlotClock {
  /** Takes in one event; never throws. `nowNs` is when it arrived. */
  observe(kind: SlotEventKind, slot: number, nowNs: number, source?: SlotSource): void;
  /** The slot time as somebody else measured it; counts until it is measured here. */
  hint(slotTimeMs: number): void;
  /** The slot in progress; null before the first event and when the last one is too long ago. */
  current(nowNs: number): number | null;
  /**
   * The slot that was in progress at a time, as far as announcements show it by now; null where
   * they do not. Goes back where the current slot had run ahead of the cluster.
   */
  at(nowNs: number): number | null;
  /** When the slot after the current one is expected, on `Clock.nowNs`; null with no current. */
  nextSlotNs(nowNs: number): number | null;
  /** The measured slot time in milliseconds; the default until enough slots were seen. */
  readonly slotTimeMs: number;
  /** When the last usable event of the source that is followed arrived; null before the first. */
  readonly lastEventNs: number | null;
  /** Sources that have said something. */
  sources(nowNs: number): readonly SlotSourceStatus[];
}

export interface SlotClockOptions {
  /** Slot time until it is measured. SIMD-0525's step live on mainnet in 2026-09: 250 ms. */
  readonly slotTimeMsDefault: number;
  /**
   * The slot time to go on by where no event came, until it is measured: that of the slowest
   * network there is, because a clock that is behind is put right by the next event, and one that
   * ran ahead is not. Agave `DEFAULT_MS_PER_SLOT`, 2026-11.
   */
  readonly slotTimeMsUnmeasured: number;
  /** The node that each source speaks for; one that is not named stands for itself. */
  readonly origins: Readonly<Partial<Record<SlotSource, string>>>;
}

/** How long, without an event and within a slot, an answer is given again. */
const CACHE_NS = NS_PER_MS;
/** How long, without an event, the choice of a source stands. */
const RECHECK_NS = 10 * NS_PER_MS;

const DEFAULTS: SlotClockOptions = {
  slotTimeMsDefault: 250,
  slotTimeMsUnmeasured: 400,
  origins: {},
};

/** One origin's vote: a number that up to four sources can share. */
const VOTE = 12;

export function createSlotClock(
  options: Partial<SlotClockOptions> = {},
  counters: RouteCounters = createRouteCounters(),
): SlotClock {
  return new Estimate({ ...DEFAULTS, ...options }, counters);
}

interface Source {
  readonly name: SlotSource;
  readonly origin: string;
  readonly estimate: SlotSourceEstimate;
  readonly lag: SlotLag;
  /** `estimate.returns` when it was last followed. */
  returns: number;
  /** Its position at the time that is being looked at; -1 for none. */
  position: number;
  /** Whether it made progress lately. */
  live: boolean;
  /** Its share of its origin's vote, while it is live. */
  share: number;
}

class Estimate implements SlotClock {
  readonly #counters: RouteCounters;
  readonly #origins: SlotClockOptions["origins"];
  /** At most one for each name. */
  readonly #sources: Source[] = [];
  /** What is shown, and what the position goes on by; the same once it is known. */
  #slotDurationMs: number;
  #extrapolationSlotMs: number;
  /** Whether events of this process have shown the slot time. */
  #measured = false;
  #followed: Source | null = null;
  /** What is believed with inertia, as a fraction of slots, and when it was; -1 for nothing. */
  #accepted = -1;
  #acceptedNs = 0;
  /** When something began to be believed out of nothing. */
  #startedNs = 0;
  /** The highest slot given out since the last rewind. */
  #publishedSlot = -1;
  readonly #past = new SlotPast();

  /** What was answered last, and for which time it stands; an event makes it void. */
  #cached: number | null = null;
  #cachedNs = 0;
  #cachedUntilNs = 0;

  constructor(options: SlotClockOptions, counters: RouteCounters) {
    this.#slotDurationMs = options.slotTimeMsDefault;
    this.#extrapolationSlotMs = options.slotTimeMsUnmeasured;
    this.#origins = options.origins;
    this.#counters = counters;
  }

  get slotTimeMs(): number {
    return this.#slotDurationMs;
  }

  get lastEventNs(): number | null {
    return this.#followed?.estimate.lastEventNs ?? null;
  }

  observe(
    kind: SlotEventKind,
    slot: number,
    nowNs: number,
    name: SlotSource = "slotsUpdates",
  ): void {
    if (!Number.isSafeInteger(slot) || slot < 0) {
      this.#counters.slotEventsInvalid += 1;
      return;
    }
    this.#counters.slotEvents += 1;
    this.#cachedUntilNs = 0;
    const source = this.#sourceOf(name);
    const plausible = source.estimate.observe(kind, slot, nowNs, this.#extrapolationSlotMs);
    if (!plausible) this.#counters.slotEventsFarAhead += 1;
    this.#follow(nowNs);
    this.#setSlotDuration();
    const speaksFor = kind === "end" ? slot + 1 : slot;
    const near = Math.abs(speaksFor - this.#publishedSlot) <= SLOT_SKIP_DISTANCE;
    if (plausible && near) source.lag.saw(speaksFor, nowNs, this.#sources);
    this.#publish(nowNs, false);
    const { anchorSlot = -1, progressNs = null } = this.#followed?.estimate ?? {};
    if (progressNs !== null) this.#past.record(anchorSlot, progressNs);
  }

  hint(slotTimeMs: number): void {
    const known = slotTimeMs >= SLOT_TIME_MS_MIN && slotTimeMs <= SLOT_TIME_MS_MAX;
    if (this.#measured || !known) return;
    this.#slotDurationMs = slotTimeMs;
    this.#extrapolationSlotMs = slotTimeMs;
    this.#cachedUntilNs = 0;
  }

  current(nowNs: number): number | null {
    // Asked for twice with every transaction.
    if (nowNs >= this.#cachedNs && nowNs < this.#cachedUntilNs) return this.#cached;
    // Who is followed changes with events, and slowly without.
    if (Math.abs(nowNs - this.#acceptedNs) > RECHECK_NS) this.#follow(nowNs);
    this.#cached = this.#publish(nowNs, true);
    this.#cachedNs = nowNs;
    this.#cachedUntilNs = nowNs + CACHE_NS;
    if (this.#cached !== null && this.#followed !== null) {
      const endNs = this.#followed.estimate.startNs(this.#cached + 1, this.#extrapolationSlotMs);
      this.#cachedUntilNs = Math.min(this.#cachedUntilNs, endNs);
    }
    return this.#cached;
  }

  at(nowNs: number): number | null {
    const known = this.#past.at(nowNs, this.#extrapolationSlotMs);
    const followed = this.#followed?.estimate.position(nowNs, this.#extrapolationSlotMs) ?? null;
    // The newest announcement may be of a source that was ahead and no longer has a vote.
    return known === null || followed === null ? known : Math.min(known, followed);
  }

  nextSlotNs(nowNs: number): number | null {
    const slot = this.current(nowNs);
    if (slot === null || this.#followed === null) return null;
    return this.#followed.estimate.startNs(slot + 1, this.#extrapolationSlotMs);
  }

  sources(nowNs: number): readonly SlotSourceStatus[] {
    return this.#sources.map((source) => {
      const eventNs = source.estimate.lastEventNs;
      return {
        source: source.name,
        ageMs: eventNs === null ? null : (nowNs - eventNs) / NS_PER_MS,
        lagMs: source.lag.ms,
        followed: source === this.#followed,
      };
    });
  }

  #sourceOf(name: SlotSource): Source {
    const known = this.#sources.find((each) => each.name === name);
    if (known !== undefined) return known;
    const estimate = new SlotSourceEstimate();
    const lag = createSlotLag();
    const origin = this.#origins[name] ?? name;
    const now = { returns: 0, position: -1, live: false, share: 0 };
    const source: Source = { name, origin, estimate, lag, ...now };
    this.#sources.push(source);
    return source;
  }

  /** The slot to give out, where the followed source is now. */
  #publish(nowNs: number, extrapolating: boolean): number | null {
    const source = this.#followed;
    const slot = source?.estimate.position(nowNs, this.#extrapolationSlotMs) ?? null;
    if (source === null || slot === null) return null;
    const returned = source.estimate.returns !== source.returns;
    source.returns = source.estimate.returns;
    if (slot > this.#publishedSlot) {
      if (extrapolating) this.#counters.slotsExtrapolated += slot - this.#publishedSlot;
      this.#publishedSlot = slot;
    } else if (slot < this.#publishedSlot - (returned ? 0 : SLOT_SKIP_DISTANCE)) {
      this.#counters.slotRewinds += 1;
      this.#past.clear();
      this.#publishedSlot = slot;
    }
    return this.#publishedSlot;
  }

  /** Decides which source to follow now, and where inertia will take what is believed. */
  #follow(nowNs: number): void {
    const expected = this.#expected(nowNs);
    if (expected < 0) this.#startedNs = nowNs;
    for (const source of this.#sources) {
      const { estimate } = source;
      source.position = estimate.position(nowNs, this.#extrapolationSlotMs) ?? -1;
      const quietNs = nowNs - (estimate.progressNs ?? nowNs);
      source.live = source.position >= 0 && quietNs <= SLOT_SOURCE_LIVE_MS * NS_PER_MS;
    }
    const isNew = nowNs - this.#startedNs <= SLOT_SETTLE_MS * NS_PER_MS;
    const center = this.#center(expected, isNew, this.#share());
    if (center === null) return;
    let [lowest, freshest] = [center, center];
    for (const source of this.#sources) {
      if (!source.live || !agree(source, center)) continue;
      if (source.position > freshest.position) freshest = source;
      if (source.position < lowest.position) lowest = source;
    }
    this.#followed = this.#stay(freshest);
    // No further than all who agree demand.
    const [low, high] = [lowest.position, freshest.position + 1];
    this.#accepted = expected < 0 ? low : Math.min(high, Math.max(low, expected));
    this.#acceptedNs = nowNs;
  }

  /** Of two that are equally fresh, the one that is followed already. */
  #stay(freshest: Source): Source {
    const before = this.#followed;
    return before?.live && before.position === freshest.position ? before : freshest;
  }

  /** The source around which most agree; null where what was followed goes on by the clock. */
  #center(expected: number, isNew: boolean, votesOfAll: number): Source | null {
    let best: Source | null = null;
    let bestVotes = 0;
    let isTied = false;
    for (const source of this.#sources) {
      if (!source.live) continue;
      const votes = this.#votes(source);
      const isBetter = best !== null && this.#isBetter(source, best, expected, isNew);
      isTied = votes === bestVotes || (isTied && votes < bestVotes);
      if (votes > bestVotes || (votes === bestVotes && isBetter)) {
        best = source;
        bestVotes = votes;
      }
    }
    if (best === null || best === this.#followed || expected < 0) return best;
    const majority = bestVotes * 2 > votesOfAll && this.#isSeconded(best);
    if (majority || distance(best, expected) <= SLOT_SKIP_DISTANCE) return best;
    if (isNew && isTied && isAhead(best, expected)) return best;
    // A stranger far from everything that was believed has to wait until that is too old.
    return this.#followed !== null && this.#followed.position >= 0 ? null : best;
  }

  /**
   * Of two with as many votes. Who was first by a moment may lag: nodes do, and none knows of slots
   * that have not been.
   */
  #isBetter(source: Source, best: Source, expected: number, isNew: boolean): boolean {
    if (isNew && isAhead(source, best.position)) return true;
    if (isNew && isAhead(best, source.position)) return false;
    return distance(source, expected) < distance(best, expected);
  }

  #votes(center: Source): number {
    let votes = 0;
    for (const source of this.#sources) {
      if (source.live && agree(source, center)) votes += source.share;
    }
    return votes;
  }

  /** Whether another source agrees with it. */
  #isSeconded(center: Source): boolean {
    for (const source of this.#sources) {
      if (source !== center && source.live && agree(source, center)) return true;
    }
    return false;
  }

  /** Divides the vote of each origin among its live sources; answers the sum of all. */
  #share(): number {
    let votes = 0;
    for (const source of this.#sources) {
      let count = 0;
      for (const other of this.#sources) {
        if (other.live && other.origin === source.origin) count += 1;
      }
      source.share = source.live ? VOTE / count : 0;
      votes += source.share;
    }
    return votes;
  }

  /** What was believed, carried on by the wall clock; -1 when it is too old or there is nothing. */
  #expected(nowNs: number): number {
    if (this.#accepted < 0) return -1;
    const passed = Math.max(0, nowNs - this.#acceptedNs) / (this.#extrapolationSlotMs * NS_PER_MS);
    return passed > SLOT_EXTRAPOLATION_MAX ? -1 : this.#accepted + passed;
  }

  /** The slot time moves no further than all who agree with the estimate demand. */
  #setSlotDuration(): void {
    const followed = this.#followed;
    if (followed === null) return;
    let [lowest, highest] = [Number.POSITIVE_INFINITY, 0];
    for (const source of this.#sources) {
      const ms = source.live && agree(source, followed) ? source.estimate.slotTimeMs : null;
      if (ms === null) continue;
      lowest = Math.min(lowest, ms);
      highest = Math.max(highest, ms);
    }
    if (highest === 0) return;
    this.#measured = true;
    this.#slotDurationMs = Math.min(highest, Math.max(lowest, this.#slotDurationMs));
    this.#extrapolationSlotMs = this.#slotDurationMs;
  }
}

function agree(a: Source, b: Source): boolean {
  return Math.abs(a.position - b.position) <= SLOT_AGREE_DISTANCE;
}

/** Whether it has just shown that it goes on, from further on than can be jitter. */
function isAhead(source: Source, position: number): boolean {
  const isProven = source.estimate.steps === SLOT_STEPS_MIN;
  return isProven && source.position - position > SLOT_SKIP_DISTANCE;
}

function distance(source: Source, expected: number): number {
  return expected < 0 ? source.position : Math.abs(source.position - expected);
}
