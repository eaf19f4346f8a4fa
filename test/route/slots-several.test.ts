/** Several slot sources, on a virtual network: which source the clock follows, and when. */

import { describe, expect, it } from "vitest";
import { createRouteCounters } from "../../src/route/counters.ts";
import { createSchedule } from "../../src/route/schedule.ts";
import { createSlotClock, type SlotSource } from "../../src/route/slots.ts";

const MS = 1_000_000;
const FIRST = 10_000;

/** The behavior of one source, relative to the real slots. */
interface Manner {
  /** The delay of its announcement of a slot. */
  readonly lateMs?: number;
  /** The slot that it announces instead of the real one; null: none. */
  readonly says?: (slot: number) => number | null;
}

/** Lets `slots` slots pass; returns the estimate's error at 90 % of each. */
function run(
  manners: Partial<Record<SlotSource, Manner>>,
  { slots = 300, slotMs = 250, clock = createSlotClock({}, createRouteCounters()), first = FIRST },
): { readonly errors: readonly number[]; readonly clock: typeof clock } {
  const fromMs = (first - FIRST) * slotMs;
  const events = Object.entries(manners).flatMap(([source, { lateMs = 0, says }]) =>
    Array.from({ length: slots }, (_, index) => {
      const slot = says === undefined ? first + index : says(first + index);
      return { source, slot, atMs: fromMs + index * slotMs + lateMs };
    }),
  );
  const looks = Array.from({ length: slots }, (_, index) => ({
    source: null,
    slot: first + index,
    atMs: fromMs + index * slotMs + slotMs * 0.9,
  }));
  const errors: number[] = [];
  for (const { source, slot, atMs } of [...events, ...looks].sort((a, b) => a.atMs - b.atMs)) {
    if (slot === null) continue;
    // The keys of `manners` are sources.
    if (source !== null) clock.observe("start", slot, atMs * MS, source as SlotSource);
    else errors.push((clock.current(atMs * MS) ?? Number.NaN) - slot);
  }
  return { errors, clock };
}

/** A source that announces each slot a moment after others. */
const LATE: Manner = { lateMs: 20 };

const worst = (errors: readonly number[]): number => Math.max(...errors.map(Math.abs));

describe("several sources of slots", () => {
  it("follow the freshest, and know how late each of the others is", () => {
    const manners = { grpc: {}, slotsUpdates: { lateMs: 40 }, slot: { lateMs: 180 } };
    const { errors, clock } = run(manners, {});
    expect(worst(errors)).toBe(0);
    const byName = Object.fromEntries(clock.sources(0).map((each) => [each.source, each]));
    expect(byName["grpc"]).toMatchObject({ followed: true, lagMs: 0 });
    expect(byName["slotsUpdates"]).toMatchObject({ followed: false });
    expect(byName["slotsUpdates"]?.lagMs).toBeCloseTo(40);
    expect(byName["slot"]?.lagMs).toBeCloseTo(180);
  });

  it("are replaced without a jump by one that was asked now and then", () => {
    const rarely = (slot: number): number | null => (slot % 5 === 0 ? slot : null);
    const { clock, errors } = run({ slotsUpdates: {}, polling: { says: rarely } }, { slotMs: 400 });
    expect(worst(errors)).toBe(0);
    const alone = run({ polling: {} }, { clock, slotMs: 400, first: FIRST + 300, slots: 60 });
    expect(worst(alone.errors)).toBe(0);
  });

  it("give way to a fresher one that comes later", () => {
    const says = (slot: number) => (slot < FIRST + 50 ? null : slot);
    const { errors, clock } = run({ slot: { lateMs: 600 }, grpc: { says } }, {});
    expect(errors[49]).toBe(-2);
    expect(worst(errors.slice(50))).toBe(0);
    expect(clock.sources(0).find(({ followed }) => followed)?.source).toBe("grpc");
  });

  it("go on without a step when the freshest stops", () => {
    const says = (slot: number) => (slot < FIRST + 100 ? slot : null);
    const { errors, clock } = run({ grpc: { says }, slot: { lateMs: 180 } }, {});
    expect(worst(errors)).toBeLessThanOrEqual(1);
    expect(clock.sources(0).find(({ followed }) => followed)?.source).toBe("slot");
  });

  it("are not held by one that repeats a slot for ever", () => {
    const says = (slot: number) => Math.min(slot, FIRST + 50);
    const { errors } = run({ grpc: { says }, slotsUpdates: { lateMs: 60 } }, {});
    expect(worst(errors)).toBe(0);
  });

  it.each([
    ["jumps far ahead", (slot: number) => slot + (slot > FIRST + 100 ? 1_000_000 : 0)],
    ["jumps a little ahead", (slot: number) => slot + (slot > FIRST + 100 ? 40 : 0)],
    ["falls far behind", (slot: number) => slot - (slot > FIRST + 100 ? 5_000 : 0)],
    ["drifts ahead", (slot: number) => slot + Math.floor(Math.max(0, slot - FIRST - 60) / 2)],
    ["runs at twice the pace", (slot: number) => 2 * slot - FIRST],
    ["runs at half the pace", (slot: number) => Math.floor((slot + FIRST) / 2)],
  ])("are not pulled by one of two that %s", (_, says) => {
    for (const honest of ["grpc", "polling"] as const) {
      const { errors, clock } = run({ slotsUpdates: { says }, [honest]: { lateMs: 50 } }, {});
      expect(worst(errors)).toBeLessThanOrEqual(4);
      expect(worst(errors.slice(-100))).toBeLessThanOrEqual(1);
      expect(clock.slotTimeMs).toBeCloseTo(250, -1);
    }
  });

  it("are put right by two honest ones when the first word was a lie", () => {
    const counters = createRouteCounters();
    const clock = createSlotClock({}, counters);
    clock.observe("polled", 9_000_000, 0, "polling");
    const says = (slot: number) => slot + 9_000_000 - FIRST;
    const { errors } = run({ polling: { says }, grpc: {}, slot: { lateMs: 100 } }, { clock });
    expect(worst(errors.slice(5))).toBe(0);
    expect(counters.slotRewinds).toBe(1);
  });

  it.each([
    ["a node asked first lags", { polling: { says: (slot: number) => slot - 300 }, grpc: LATE }],
    [
      "a node asked later lags",
      { polling: {}, grpc: { ...LATE, says: (slot: number) => slot - 300 } },
    ],
    [
      "all of one node's lag",
      {
        polling: { says: (slot: number) => slot - 300 },
        slot: { says: (slot: number) => slot - 300 },
        grpc: LATE,
      },
    ],
  ] as const)("settle on who is ahead and goes on where %s", (_, manners) => {
    const clock = createSlotClock({ origins: { polling: "a", slot: "a", grpc: "b" } });
    const { errors } = run(manners, { clock });
    expect(worst(errors.slice(10))).toBe(0);
    // After too long a silence all sources start anew.
    const again = run(manners, { clock, first: FIRST + 2_000 });
    expect(worst(again.errors.slice(10))).toBe(0);
  });

  it("do not fall for a stranger when all honest ones stop, until it is too long ago", () => {
    const clock = createSlotClock();
    run({ grpc: {}, slotsUpdates: { lateMs: 30 } }, { clock, slots: 100 });
    const says = (slot: number) => slot + 1_000_000;
    const { errors } = run({ polling: { says } }, { clock, first: FIRST + 100, slots: 200 });
    expect(worst(errors.slice(0, 190))).toBeLessThanOrEqual(1);
    const later = run({ polling: { says } }, { clock, first: FIRST + 300, slots: 100 });
    expect(later.errors.at(-1)).toBe(1_000_000);
  });

  it("never go back for a fork, for late words, or for a switch to a slower source", () => {
    const clock = createSlotClock();
    let before = -1;
    for (let slot = FIRST; slot < FIRST + 200; slot += 1) {
      const atNs = (slot - FIRST) * 250 * MS;
      if (slot % 60 < 40) clock.observe("start", slot, atNs, "grpc");
      if (slot % 7 === 0) clock.observe("start", slot - 9, atNs + MS, "slotsUpdates");
      clock.observe("end", slot - 2, atNs + 2 * MS, "slot");
      for (const lateNs of [3 * MS, 240 * MS]) {
        const current = clock.current(atNs + lateNs) ?? -1;
        expect(current).toBeGreaterThanOrEqual(before);
        before = current;
      }
    }
    expect(before).toBeGreaterThanOrEqual(FIRST + 198);
  });

  it("pass over skipped slots together, by the clock", () => {
    const says = (slot: number) => (slot % 40 >= 36 ? null : slot);
    const { errors } = run({ grpc: { says }, slot: { lateMs: 180, says } }, {});
    expect(worst(errors)).toBe(0);
  });

  it("follow the network's slot time through its steps", () => {
    const clock = createSlotClock();
    let atMs = 0;
    let slot = FIRST;
    for (const slotMs of [400, 300, 250, 200]) {
      for (let count = 0; count < 120; count += 1) {
        clock.observe("start", slot, atMs * MS, "grpc");
        clock.observe("start", slot, (atMs + 60) * MS, "slotsUpdates");
        expect(Math.abs((clock.current((atMs + 100) * MS) ?? 0) - slot)).toBeLessThanOrEqual(1);
        slot += 1;
        atMs += slotMs;
      }
      expect(clock.slotTimeMs).toBeCloseTo(slotMs, 0);
    }
  });

  it("lead over the end of an epoch although nothing is heard there", () => {
    const schedule = createSchedule();
    const halves = (epoch: number) =>
      schedule.setEpoch({
        epoch,
        firstSlot: epoch * 100,
        slots: 100,
        leaders: new Map([
          [`first of ${epoch}`, Array.from({ length: 50 }, (_, index) => index)],
          [`second of ${epoch}`, Array.from({ length: 50 }, (_, index) => index + 50)],
        ]),
      });
    for (const epoch of [100, 101]) halves(epoch);
    const says = (slot: number) => (slot >= 10_098 && slot < 10_102 ? null : slot);
    const { clock } = run({ grpc: { says }, slot: { says, lateMs: 90 } }, { slots: 98 });
    const leaders = [97, 98, 99, 100, 101].map((index) => {
      const slot = clock.current((index * 250 + 10) * MS);
      return slot === null ? null : schedule.leaderAt(slot);
    });
    const [second, first] = ["second of 100", "first of 101"];
    expect(leaders).toEqual([second, second, second, first, first]);
  });
});

describe("sources that speak for the same node", () => {
  const origins = { slotsUpdates: "a", slot: "a", polling: "a", grpc: "b" };
  const clockOf = (of = {}) => createSlotClock({ origins: of }, createRouteCounters());
  const followed = (clock: ReturnType<typeof clockOf>) =>
    clock.sources(0).find((each) => each.followed)?.source;

  it.each([
    ["jump far ahead", (slot: number) => slot + (slot > FIRST + 100 ? 1_000_000 : 0)],
    ["jump a little ahead", (slot: number) => slot + (slot > FIRST + 100 ? 40 : 0)],
    ["fall far behind", (slot: number) => slot - (slot > FIRST + 100 ? 5_000 : 0)],
    ["drift ahead", (slot: number) => slot + Math.floor(Math.max(0, slot - FIRST - 60) / 2)],
    ["run at half the pace", (slot: number) => Math.floor((slot + FIRST) / 2)],
  ])("do not outvote another node's one when they %s", (_, says) => {
    const manners = { slotsUpdates: { says }, slot: { says }, polling: { says }, grpc: {} };
    const { errors, clock } = run(manners, { clock: clockOf(origins) });
    // One slot more than the tolerance of sources that agree, until they diverge.
    expect(worst(errors)).toBeLessThanOrEqual(5);
    expect(worst(errors.slice(-100))).toBeLessThanOrEqual(1);
    expect(followed(clock)).toBe("grpc");
    const apart = run(manners, { clock: clockOf() });
    expect(worst(apart.errors.slice(-100))).toBeGreaterThan(20);
  });

  it("are not outvoted by another node's one either", () => {
    const says = (slot: number) => slot + (slot > FIRST + 100 ? 1_000_000 : 0);
    const honest = { slotsUpdates: {}, slot: {}, polling: {} };
    const { errors, clock } = run({ grpc: { says }, ...honest }, { clock: clockOf(origins) });
    expect(worst(errors.slice(0, 100))).toBe(0);
    expect(worst(errors)).toBeLessThanOrEqual(1);
    expect(followed(clock)).not.toBe("grpc");
  });

  it("share its vote, so that one of them that lies is alone against two", () => {
    const says = (slot: number) => slot + (slot > FIRST + 50 ? 30 : 0);
    const manners = { slotsUpdates: { says }, slot: { lateMs: 60 }, polling: { lateMs: 120 } };
    const { errors, clock } = run(manners, { clock: clockOf(origins) });
    expect(worst(errors.slice(-200))).toBe(0);
    expect(followed(clock)).toBe("slot");
    const first = clockOf(origins);
    first.observe("polled", 9_000_000, 0, "polling");
    const lies = { polling: { says: (slot: number) => slot + 9_000_000 - FIRST } };
    const right = run({ ...lies, slotsUpdates: {}, slot: { lateMs: 60 } }, { clock: first });
    expect(worst(right.errors.slice(5))).toBe(0);
  });

  it("are followed wherever they go once the other node is silent for long", () => {
    const says = (slot: number) => slot - 2_000;
    const grpc = { says: (slot: number) => (slot < FIRST + 100 ? slot : null) };
    const a = { slotsUpdates: { says }, slot: { says }, polling: { says } };
    const { errors, clock } = run({ grpc, ...a }, { clock: clockOf(origins) });
    expect(worst(errors.slice(5, 100))).toBe(0);
    expect(errors.at(-1)).toBe(-2_000);
    expect(followed(clock)).not.toBe("grpc");
  });

  it("give way to a fresher one of another node, and take its place when it stops", () => {
    const grpc = { says: (slot: number) => (slot < FIRST + 100 ? slot : null) };
    const a = { slotsUpdates: { lateMs: 150 }, slot: { lateMs: 200 }, polling: { lateMs: 240 } };
    const { errors, clock } = run({ grpc, ...a }, { clock: clockOf(origins) });
    expect(worst(errors.slice(0, 100))).toBe(0);
    expect(worst(errors)).toBeLessThanOrEqual(1);
    expect(followed(clock)).toBe("slotsUpdates");
  });
});
