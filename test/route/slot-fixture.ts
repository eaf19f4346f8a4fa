/**
 * A virtual cluster for the slot clock: slots that pass, stand still, are skipped or are used
 * again, feeds that report them, and for how long the clock is more than four slots off.
 */

import { RouteCounters } from "../../src/route/counters.ts";
import { createSlotClock, type SlotClock, type SlotSource } from "../../src/route/slots.ts";

export const MS = 1_000_000;
export const FIRST = 10_000;
/** Slots before something happens. */
export const BEFORE = 100;

/** A slot of the virtual cluster, and when it begins. */
export interface Begun {
  readonly slot: number;
  readonly atMs: number;
  /** Whether it passes without a block, so that no source reports it. */
  readonly isSkipped?: boolean;
}

export interface Scenario {
  readonly slotMs?: number;
  /** How long no slot begins. */
  readonly stallMs?: number;
  /** How many slot numbers are used again. */
  readonly again?: number;
  /** Where in its window the last slot is before that. */
  readonly place?: number;
  /** Slots after that. */
  readonly after?: number;
  /** How many of these are skipped first, and again in every 40 slots. */
  readonly skipped?: number;
  /**
   * In a migration, for how long slots are likely to go back after they did, in milliseconds. Until
   * 4 s before that slots pass by the clock, and the certificate of Alpenglow is read 0.6 s after
   * it. By default the cluster has Alpenglow from the first slot on.
   */
  readonly likelyMs?: number;
}

type Change = readonly [atMs: number, act: (clock: SlotClock) => void];

/** When the pace changes in a migration, relative to the first slot that is used again. */
function migrationOf(likelyMs: number): Change[] {
  const changes: Change[] = [
    [Number.NEGATIVE_INFINITY, (clock) => clock.allowStandstill(false)],
    [-4_000, (clock) => clock.expectBack(true)],
    [600, (clock) => clock.allowStandstill(true)],
    [likelyMs, (clock) => clock.expectBack(false)],
  ];
  return changes.sort(([a], [b]) => a - b);
}

const SKIPPED_EVERY = 40;

/** Slots pass, stand still and go on, `again` below the last one. */
export function clusterOf(scenario: Scenario): Begun[] {
  const { slotMs = 250, stallMs = 0, again = 0, place = 0, after = 200, skipped = 0 } = scenario;
  const last = FIRST + BEFORE + place;
  const begun: Begun[] = [];
  for (let slot = FIRST; slot <= last; slot += 1) {
    begun.push({ slot, atMs: (slot - FIRST) * slotMs });
  }
  const fromMs = (last + 1 - FIRST) * slotMs + stallMs;
  for (let index = 0; index < after; index += 1) {
    const isSkipped = index % SKIPPED_EVERY < skipped;
    begun.push({ slot: last + 1 - again + index, atMs: fromMs + index * slotMs, isSkipped });
  }
  return begun;
}

/** What a source reports of the cluster. */
export interface Feed {
  readonly lateMs?: number;
  /** How much later than that its events are at most, in turns. */
  readonly jitterMs?: number;
  /** Whether it reports ends as well as starts. */
  readonly ends?: boolean;
  /** Its replay lags: it reports each slot once more, that much later, and ends only then. */
  readonly replayMs?: number;
  /** It reports the current slot this often, instead of each one. */
  readonly everyMs?: number;
  /** From then on it reports nothing. */
  readonly untilMs?: number;
}

export type Feeds = Partial<Record<SlotSource, Feed>>;

export interface Event {
  readonly source: SlotSource;
  readonly kind: "start" | "end" | "polled";
  readonly slot: number;
  readonly atMs: number;
}

export function eventsOf(feeds: Feeds, begun: readonly Begun[], slotMs: number): Event[] {
  // The keys of `feeds` are sources.
  return Object.entries(feeds).flatMap(([name, feed]) => {
    const { untilMs = Number.POSITIVE_INFINITY } = feed;
    const events = eventsOfSource(name as SlotSource, feed, begun, slotMs);
    return events.filter(({ atMs }) => atMs < untilMs);
  });
}

function eventsOfSource(
  source: SlotSource,
  { lateMs = 0, jitterMs = 0, ends = false, replayMs, everyMs }: Feed,
  begun: readonly Begun[],
  slotMs: number,
): Event[] {
  const events: Event[] = [];
  const endMs = begun.at(-1)?.atMs ?? 0;
  const blocks = begun.filter(({ isSkipped }) => !isSkipped);
  for (let ms = 0; everyMs !== undefined && ms < endMs; ms += everyMs) {
    events.push({ source, kind: "polled", slot: slotAt(blocks, ms), atMs: ms + lateMs });
  }
  if (everyMs !== undefined) return events;
  for (const [index, { slot, atMs }] of blocks.entries()) {
    const reportedMs = atMs + lateMs + ((index * 7) % 5) * (jitterMs / 4);
    events.push({ source, kind: "start", slot, atMs: reportedMs });
    if (ends) events.push({ source, kind: "end", slot, atMs: reportedMs + slotMs * 0.9 });
    if (replayMs === undefined) continue;
    events.push({ source, kind: "start", slot, atMs: reportedMs + replayMs });
    events.push({ source, kind: "end", slot, atMs: reportedMs + replayMs + slotMs * 0.5 });
  }
  return events;
}

export function slotAt(begun: readonly Begun[], ms: number): number {
  return begun.findLast(({ atMs }) => atMs <= ms)?.slot ?? Number.NaN;
}

export interface Result {
  /** For how long the clock was more than 4 slots off. */
  readonly offMs: number;
  /** For how long it was more than 19 ahead. */
  readonly farAheadMs: number;
  /** The most slots that it was off, and at the end. */
  readonly worst: number;
  readonly last: number;
  readonly counters: RouteCounters;
}

export const STEP_MS = 10;

export function run(
  feeds: Feeds,
  scenario: Scenario,
  origins = {},
  lies: readonly Event[] = [],
): Result {
  const { slotMs = 250 } = scenario;
  const counters = new RouteCounters();
  const clock: SlotClock = createSlotClock({ origins }, counters);
  const begun = clusterOf(scenario);
  const events = [...eventsOf(feeds, begun, slotMs), ...lies].sort((a, b) => a.atMs - b.atMs);
  const endMs = begun.at(-1)?.atMs ?? 0;
  const backMs = begun.find(({ slot }, at) => slot < (begun[at - 1]?.slot ?? 0))?.atMs ?? endMs;
  const changes = scenario.likelyMs === undefined ? [] : migrationOf(scenario.likelyMs);
  let [offMs, farAheadMs, worst, last, next] = [0, 0, 0, 0, 0];
  for (let ms = 0; ms <= endMs; ms += STEP_MS) {
    while (changes[0] !== undefined && backMs + changes[0][0] <= ms) changes.shift()?.[1](clock);
    for (let event = events[next]; event !== undefined && event.atMs <= ms; event = events[next]) {
      clock.observe(event.kind, event.slot, event.atMs * MS, event.source);
      next += 1;
    }
    last = (clock.current(ms * MS) ?? Number.POSITIVE_INFINITY) - slotAt(begun, ms);
    if (Math.abs(last) > 4) offMs += STEP_MS;
    if (last > 19) farAheadMs += STEP_MS;
    worst = Math.max(worst, Math.abs(last));
  }
  return { offMs, farAheadMs, worst, last, counters };
}

/** A clock after all of these slots; without a scenario's end, only those before it. */
export function driven(begun: readonly Begun[], feeds: Feeds = { slotsUpdates: {} }) {
  const counters = new RouteCounters();
  const clock = createSlotClock({}, counters);
  const events = eventsOf(feeds, begun, 250).sort((a, b) => a.atMs - b.atMs);
  for (const { kind, slot, atMs, source } of events) clock.observe(kind, slot, atMs * MS, source);
  return { clock, counters };
}

/** The sources of an edge; all but the last have a subscription. */
export const FEEDS: readonly (readonly [string, Feeds])[] = [
  ["one source", { slotsUpdates: {} }],
  ["one source that reports ends", { slotsUpdates: { ends: true } }],
  ["jitter", { slotsUpdates: { ends: true, jitterMs: 120 } }],
  ["two sources", { slotsUpdates: { ends: true }, slot: { lateMs: 120 } }],
  ["polls of another node", { slotsUpdates: { ends: true }, polling: { everyMs: 400 } }],
  ["three sources", { grpc: {}, slotsUpdates: { lateMs: 40 }, slot: { lateMs: 180 } }],
  ["polls alone", { polling: { everyMs: 400 } }],
];
