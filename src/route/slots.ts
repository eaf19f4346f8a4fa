/**
 * Estimates the current slot from several sources, each of which may stop or be wrong.
 *
 * Each source has its own position (`slot-source.ts`). Sources near each other agree; the group
 * with most votes wins, and its member furthest ahead is followed. Each origin (the node behind a
 * source) has one vote, shared by its sources, so one node cannot outvote another. On a tie,
 * inertia decides: the accepted slot continues by the wall clock, and the nearest source wins. So
 * neither a jump nor a slow drift of one source moves the estimate, and a single source is followed
 * anywhere. Only the first source may have been a lagging node: one that was ahead from the
 * beginning and continues replaces it. The slot time has the same inertia.
 *
 * Without events the clock stops, and returns to the slot announced last when the cluster stands
 * still (`standstill.ts`). Otherwise the published slot goes back only if the source returned,
 * after a long silence or to slots that ascend from below (`slot-run.ts`); if the followed source
 * ascends from below it; or by more than 48 slots, which is not jitter but a corrected error. Of
 * the sources that did not go back with it, those that show nothing newer no longer count
 * (`slot-witness.ts`).
 *
 *   events ──▶ a position for each source ──▶ which agree? ──▶ the freshest of them ──▶ current
 *
 * Decision: docs/decisions/0022-slot-sources-vote.md
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_AGREE_DISTANCE, SLOT_TIME_MS_MAX, SLOT_TIME_MS_MIN } from "../core/limits.ts";
import { RouteCounters } from "./counters.ts";
import {
  SLOT_EXTRAPOLATION_MAX,
  SLOT_SETTLE_MS,
  SLOT_SKIP_DISTANCE,
  SLOT_SOURCE_LIVE_MS,
  SLOT_STEPS_MIN,
} from "./limits.ts";
import { createSlotLag, type SlotLag } from "./slot-lag.ts";
import { SlotPace } from "./slot-pace.ts";
import { SlotPast } from "./slot-past.ts";
import { SlotRun } from "./slot-run.ts";
import { SlotSourceEstimate } from "./slot-source.ts";
import type { SlotEventKind } from "./slot-time.ts";
import { isContradicted, isOutdated } from "./slot-witness.ts";
import { Standstill } from "./standstill.ts";

/** Where slot events come from; also a label of metrics. */
export const SLOT_SOURCES = ["grpc", "slotsUpdates", "slot", "polling"] as const;
export type SlotSource = (typeof SLOT_SOURCES)[number];

export interface SlotSourceStatus {
  readonly source: SlotSource;
  /** Time since its last event in milliseconds; null before the first. */
  readonly ageMs: number | null;
  /** How much later than the first source it reports slots, smoothed; null if it never did. */
  readonly lagMs: number | null;
  /** Whether the estimate follows it now. */
  readonly followed: boolean;
}

export interface SlotClockOptions {
  /** Slot time until it is measured. SIMD-0525's step live on mainnet in 2026-09: 250 ms. */
  readonly slotTimeMsDefault: number;
  /**
   * The slot time for extrapolation until it is measured: that of the slowest network, because the
   * next event corrects a clock that is behind, but not one that ran ahead. Agave
   * `DEFAULT_MS_PER_SLOT`, 2026-11.
   */
  readonly slotTimeMsUnmeasured: number;
  /** The node behind each source; a source not named is its own node. */
  readonly origins: Readonly<Partial<Record<SlotSource, string>>>;
}

/** How long a result is cached, without an event and within a slot. */
const CACHE_NS = NS_PER_MS;
/** How long the choice of a source stands without an event. */
const RECHECK_NS = 10 * NS_PER_MS;

const DEFAULTS: SlotClockOptions = {
  slotTimeMsDefault: 250,
  slotTimeMsUnmeasured: 400,
  origins: {},
};

/** One origin's vote: a number that up to four sources can share evenly. */
const VOTE = 12;

export function createSlotClock(
  options: Partial<SlotClockOptions> = {},
  counters: RouteCounters = new RouteCounters(),
): SlotClock {
  return new SlotClock({ ...DEFAULTS, ...options }, counters);
}

interface Source {
  readonly name: SlotSource;
  readonly origin: string;
  readonly estimate: SlotSourceEstimate;
  readonly lag: SlotLag;
  /** `estimate.returns` when it was last followed. */
  returns: number;
  /** The same when its lag was last measured. */
  lagReturns: number;
  /** Its position at the time under evaluation; -1 for none, or if it is outdated. */
  position: number;
  /** Whether it made progress recently. */
  live: boolean;
  /** Whether it went back, and another source shows that the cluster did not. */
  contradicted: boolean;
  /** Its share of its origin's vote, while it is live. */
  share: number;
  /** The cluster's time, and `#heardNs`, when it last made progress. */
  sinceNs: number;
  heardNs: number;
}

export class SlotClock {
  readonly #counters: RouteCounters;
  readonly #origins: SlotClockOptions["origins"];
  /** At most one for each name. */
  readonly #sources: Source[] = [];
  /** The published slot time, and the one used for extrapolation; equal once measured. */
  #slotDurationMs: number;
  #extrapolationSlotMs: number;
  /** Whether events of this process have shown the slot time. */
  #measured = false;
  #followed: Source | null = null;
  /** The accepted position with inertia, in fractional slots, and its times; -1 for none. */
  #accepted = -1;
  #acceptedNs = 0;
  #acceptedTimeNs = 0;
  /** When a position was first accepted from none. */
  #startedNs = 0;
  /** The highest slot published since the last rewind. */
  #publishedSlot = -1;
  readonly #past = new SlotPast();
  readonly #pace = new SlotPace();
  readonly #standstill = new Standstill(this.#pace);
  /** The time in which sources made progress, and when one last did. */
  #heardNs = 0;
  #heardAtNs = 0;
  /** Events of the followed source below the published slot. */
  readonly #run = new SlotRun(this.#pace);

  /** The cached result and its validity; an event invalidates it. */
  #cached: number | null = null;
  #cachedNs = 0;
  #cachedUntilNs = 0;

  constructor(options: SlotClockOptions, counters: RouteCounters) {
    this.#slotDurationMs = options.slotTimeMsDefault;
    this.#extrapolationSlotMs = options.slotTimeMsUnmeasured;
    this.#origins = options.origins;
    this.#counters = counters;
  }

  /** The measured slot time in milliseconds; the default until enough slots were seen. */
  get slotTimeMs(): number {
    return this.#slotDurationMs;
  }

  /** When the last event of the followed source arrived; null before the first. */
  get lastEventNs(): number | null {
    return this.#followed?.estimate.lastEventNs ?? null;
  }

  /** Processes one event; never throws. `nowNs` is when it arrived. */
  observe(
    kind: SlotEventKind,
    slot: number,
    nowNs: number,
    name: SlotSource = "slotsUpdates",
  ): void {
    if (!Number.isSafeInteger(slot) || slot < 0) {
      this.#counters.slotEventsInvalid += 1;
      this.#sources.find((each) => each.name === name)?.estimate.interrupt();
      return;
    }
    this.#counters.slotEvents += 1;
    this.#cachedUntilNs = 0;
    const source = this.#sourceOf(name);
    const { estimate } = source;
    const { anchorSlot: anchorBefore, begunSlot: begunBefore } = estimate;
    const plausible = estimate.observe(kind, slot, nowNs, this.#extrapolationSlotMs);
    if (!plausible) this.#counters.slotEventsFarAhead += 1;
    const speaksFor = kind === "end" ? slot + 1 : slot;
    if (estimate.begunSlot !== begunBefore) this.#progressed(source, begunBefore, nowNs);
    else if (estimate.lastSlot < estimate.anchorSlot && !estimate.isMixed(nowNs)) {
      this.#standstill.observed(nowNs);
    }
    const hasMoved = estimate.anchorSlot !== anchorBefore || estimate.begunSlot !== begunBefore;
    if (hasMoved) this.#anchored(source, anchorBefore, nowNs);
    this.#follow(nowNs);
    this.#setSlotDuration();
    const near = Math.abs(speaksFor - this.#publishedSlot) <= SLOT_SKIP_DISTANCE;
    if (estimate.returns !== source.lagReturns) source.lag.clear();
    source.lagReturns = estimate.returns;
    if (plausible && near) source.lag.saw(speaksFor, nowNs, this.#sources);
    if (this.#followed !== null) this.#runBelow(this.#followed, nowNs);
    this.#publish(nowNs, false);
    const { anchorSlot = -1, progressNs = null } = this.#followed?.estimate ?? {};
    if (progressNs !== null) this.#past.record(anchorSlot, progressNs);
  }

  /**
   * Whether the cluster may stand still or go back, as with Alpenglow; by default it may. Otherwise
   * slots pass by the clock alone, as with Tower BFT, except while it is likely to go back.
   */
  allowStandstill(isPossible: boolean): void {
    this.#pace.mayStop = isPossible;
    this.#cachedUntilNs = 0;
  }

  /**
   * Whether the cluster is likely to go back now, because it confirms nothing: lower slots are then
   * followed with less evidence.
   */
  expectBack(isLikely: boolean): void {
    this.#pace.isBackLikely = isLikely;
    this.#cachedUntilNs = 0;
  }

  /** An externally measured slot time; used until it is measured here. */
  hint(slotTimeMs: number): void {
    const known = slotTimeMs >= SLOT_TIME_MS_MIN && slotTimeMs <= SLOT_TIME_MS_MAX;
    if (this.#measured || !known) return;
    this.#slotDurationMs = slotTimeMs;
    this.#extrapolationSlotMs = slotTimeMs;
    this.#cachedUntilNs = 0;
  }

  /** The current slot; null before the first event and if the last one is too old. */
  current(nowNs: number): number | null {
    // Called twice per transaction.
    if (nowNs >= this.#cachedNs && nowNs < this.#cachedUntilNs) return this.#cached;
    // The followed source changes with events, and slowly without.
    if (Math.abs(nowNs - this.#acceptedNs) > RECHECK_NS) this.#follow(nowNs);
    this.#cached = this.#publish(nowNs, true);
    this.#cachedNs = nowNs;
    this.#cachedUntilNs = nowNs + CACHE_NS;
    if (this.#cached !== null && this.#followed !== null) {
      const changeNs = this.#changeNs(this.#followed, this.#cached, nowNs);
      this.#cachedUntilNs = Math.min(this.#cachedUntilNs, changeNs);
    }
    return this.#cached;
  }

  /**
   * The slot at a past time as far as announcements show it by now; null if they do not. May be
   * below the published slot if that ran ahead of the cluster.
   */
  at(nowNs: number): number | null {
    const known = this.#past.at(nowNs, this.#extrapolationSlotMs);
    const followed = this.#followed === null ? null : this.#positionOf(this.#followed, nowNs);
    // The newest announcement may be from a source that was ahead and lost its vote.
    return known === null || followed === null ? known : Math.min(known, followed);
  }

  /**
   * When the current slot changes without an event, on `Clock.nowNs`: the next slot begins, the
   * cluster stands still, or the slot becomes unknown; null without a current one.
   */
  nextSlotNs(nowNs: number): number | null {
    const slot = this.current(nowNs);
    if (slot === null || this.#followed === null) return null;
    return this.#changeNs(this.#followed, slot, nowNs);
  }

  /** Sources that have reported at least once. */
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
    const estimate = new SlotSourceEstimate(this.#pace);
    const lag = createSlotLag();
    const origin = this.#origins[name] ?? name;
    const now = { position: -1, live: false, contradicted: false, share: 0 };
    const counts = { returns: 0, lagReturns: 0, sinceNs: 0, heardNs: this.#heardNs };
    const source: Source = { name, origin, estimate, lag, ...now, ...counts };
    this.#sources.push(source);
    return source;
  }

  #positionOf({ estimate, sinceNs }: Source, nowNs: number): number | null {
    return this.#standstill.position(estimate, sinceNs, nowNs, this.#extrapolationSlotMs);
  }

  #changeNs({ estimate, sinceNs }: Source, slot: number, nowNs: number): number {
    return this.#standstill.changeNs(estimate, sinceNs, slot, nowNs, this.#extrapolationSlotMs);
  }

  /** The cluster's time (`standstill.ts`). */
  #timeNs(nowNs: number): number {
    return this.#standstill.timeNs(nowNs, this.#extrapolationSlotMs);
  }

  /** Whether a source agrees with the followed one. */
  #isWithFollowed(source: Source, nowNs: number): boolean {
    const followed = this.#followed;
    if (followed === null || followed === source) return true;
    const [a, b] = [this.#positionOf(source, nowNs), this.#positionOf(followed, nowNs)];
    return a !== null && b !== null && Math.abs(a - b) <= SLOT_AGREE_DISTANCE;
  }

  /** A source's slot changed: from now on it advances by the cluster's time. */
  #anchored(source: Source, anchorBefore: number, nowNs: number): void {
    const { anchorSlot, begunSlot } = source.estimate;
    const timeNs = this.#timeNs(nowNs);
    const slots = anchorSlot - anchorBefore;
    // A late end says nothing of when the next slot begins.
    const dueNs = source.sinceNs + slots * this.#extrapolationSlotMs * NS_PER_MS;
    source.sinceNs = begunSlot < anchorSlot && slots > 0 ? Math.min(timeNs, dueNs) : timeNs;
  }

  /** Another slot began. Slots pass if no source that agrees with the followed one was faster. */
  #progressed(source: Source, begunBefore: number, nowNs: number): void {
    this.#heardNs = this.#heardBy(nowNs);
    this.#heardAtNs = nowNs;
    source.heardNs = this.#heardNs;
    let highest = source === this.#followed ? begunBefore : -1;
    for (const other of this.#sources) {
      if (other === source || !other.live || !this.#isWithFollowed(other, nowNs)) continue;
      highest = Math.max(highest, other.estimate.begunSlot);
    }
    const slots = source.estimate.begunSlot - highest;
    if (slots > 0) this.#standstill.progressed(nowNs, this.#extrapolationSlotMs, slots);
  }

  /** The time in which sources made progress: none is quiet because the cluster stands still. */
  #heardBy(nowNs: number): number {
    const passedNs = Math.max(0, nowNs - this.#heardAtNs);
    const passedNsMax = (SLOT_SOURCE_LIVE_MS / 2) * NS_PER_MS;
    return this.#heardNs + (this.#pace.isByClock ? passedNs : Math.min(passedNs, passedNsMax));
  }

  /** Counts events of the followed source below the published slot. */
  #runBelow({ estimate, position }: Source, nowNs: number): void {
    if (this.#publishedSlot - position <= SLOT_AGREE_DISTANCE) this.#run.reset();
    else if (this.#run.add(estimate.anchorSlot, nowNs, this.#extrapolationSlotMs)) {
      this.#rewind(position);
    }
  }

  /** The slot to publish from the followed source's position. */
  #publish(nowNs: number, extrapolating: boolean): number | null {
    const source = this.#followed;
    const slot = source === null ? null : this.#positionOf(source, nowNs);
    if (source === null || slot === null) return null;
    const returned = source.estimate.returns !== source.returns;
    source.returns = source.estimate.returns;
    if (slot > this.#publishedSlot) {
      if (extrapolating) this.#counters.slotsExtrapolated += slot - this.#publishedSlot;
      this.#publishedSlot = slot;
    } else if (slot < this.#publishedSlot - (returned ? 0 : SLOT_SKIP_DISTANCE)) {
      this.#rewind(slot);
    } else if (
      slot < this.#publishedSlot &&
      this.#standstill.isInDoubt(nowNs, this.#extrapolationSlotMs)
    ) {
      if (this.#standstill.isStill(nowNs, this.#extrapolationSlotMs))
        this.#counters.slotStalls += 1;
      this.#publishedSlot = slot;
    }
    return this.#publishedSlot;
  }

  #rewind(slot: number): void {
    this.#counters.slotRewinds += 1;
    this.#past.clear();
    this.#run.reset();
    this.#publishedSlot = slot;
    // Others that returned with it have nothing left to return from.
    for (const source of this.#sources) source.returns = source.estimate.returns;
  }

  /** Chooses the source to follow and advances the accepted position. */
  #follow(nowNs: number): void {
    const expected = this.#expected(nowNs);
    if (expected < 0) this.#startedNs = nowNs;
    for (const source of this.#sources) {
      source.position = this.#positionOf(source, nowNs) ?? -1;
      const quietNs = this.#heardBy(nowNs) - source.heardNs;
      source.live = source.position >= 0 && quietNs <= SLOT_SOURCE_LIVE_MS * NS_PER_MS;
      source.contradicted = isContradicted(source, this.#sources, nowNs);
    }
    for (const source of this.#sources) {
      if (!isOutdated(source, this.#sources, nowNs)) continue;
      source.position = -1;
      source.live = false;
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
    // Moves no further than all agreeing sources require.
    const [low, high] = [lowest.position, freshest.position + 1];
    this.#accepted = expected < 0 ? low : Math.min(high, Math.max(low, expected));
    this.#acceptedNs = nowNs;
    this.#acceptedTimeNs = this.#timeNs(nowNs);
  }

  /** Of two equally fresh sources, prefers the one already followed. */
  #stay(freshest: Source): Source {
    const before = this.#followed;
    return before?.live && before.position === freshest.position ? before : freshest;
  }

  /** The source that most agree with; null while the followed one continues by the clock. */
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
    if (this.#followed?.contradicted) return best;
    const majority = bestVotes * 2 > votesOfAll && this.#isSeconded(best);
    if (majority || distance(best, expected) <= SLOT_SKIP_DISTANCE) return best;
    if (isNew && isTied && isAhead(best, expected)) return best;
    // A source far from the accepted position must wait until that is too old.
    return this.#followed !== null && this.#followed.position >= 0 ? null : best;
  }

  /** Breaks ties. The first source may lag: nodes do, but none knows future slots. */
  #isBetter(source: Source, best: Source, expected: number, isNew: boolean): boolean {
    if (source.contradicted !== best.contradicted) return best.contradicted;
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

  /** The accepted position advanced by the wall clock; -1 if too old or absent. */
  #expected(nowNs: number): number {
    if (this.#accepted < 0) return -1;
    const slotNs = this.#extrapolationSlotMs * NS_PER_MS;
    if (nowNs - this.#acceptedNs > SLOT_EXTRAPOLATION_MAX * slotNs) return -1;
    return this.#accepted + Math.max(0, this.#timeNs(nowNs) - this.#acceptedTimeNs) / slotNs;
  }

  /** Moves the slot time no further than all agreeing sources require. */
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

/** Whether it has just proven progress from a position further ahead than jitter. */
function isAhead(source: Source, position: number): boolean {
  const isProven = source.estimate.steps === SLOT_STEPS_MIN;
  return isProven && source.position - position > SLOT_SKIP_DISTANCE;
}

function distance(source: Source, expected: number): number {
  return expected < 0 ? source.position : Math.abs(source.position - expected);
}
