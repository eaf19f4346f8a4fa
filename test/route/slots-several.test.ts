/** Several slot sources, on a virtual network: which source the clock follows, and when. */

import { describe, expect, it } from "vitest";
import { RouteCounters } from "../../src/route/counters.ts";
import { createSchedule } from "../../src/route/schedule.ts";
import { createSlotClock, type SlotSource } from "../../src/route/slots.ts";

const MS = 1_000_000;
const FIRST = 10_000;

/** The behavior of one source, relative to the real slots. */
interface SourceBehavior {
  /** The delay of its announcement of a slot. */
  readonly lateMs?: number;
  /** The slot that it announces instead of the real one; null: none. */
  readonly announces?: (slot: number) => number | null;
}

/** Lets `slots` slots pass; returns the estimate's error at 90 % of each. */
function run(
  behaviors: Partial<Record<SlotSource, SourceBehavior>>,
  { slots = 300, slotMs = 250, clock = createSlotClock({}, new RouteCounters()), first = FIRST },
): { readonly errors: readonly number[]; readonly clock: typeof clock } {
  const fromMs = (first - FIRST) * slotMs;
  const events = Object.entries(behaviors).flatMap(([source, { lateMs = 0, announces }]) =>
    Array.from({ length: slots }, (_, index) => {
      const slot = announces === undefined ? first + index : announces(first + index);
      return { source, slot, atMs: fromMs + index * slotMs + lateMs };
    }),
  );
  const samples = Array.from({ length: slots }, (_, index) => ({
    source: null,
    slot: first + index,
    atMs: fromMs + index * slotMs + slotMs * 0.9,
  }));
  const errors: number[] = [];
  for (const { source, slot, atMs } of [...events, ...samples].sort((a, b) => a.atMs - b.atMs)) {
    if (slot === null) continue;
    // The keys of `behaviors` are sources.
    if (source !== null) clock.observe("start", slot, atMs * MS, source as SlotSource);
    else errors.push((clock.current(atMs * MS) ?? Number.NaN) - slot);
  }
  return { errors, clock };
}

/** A source that announces each slot 20 ms late. */
const LATE: SourceBehavior = { lateMs: 20 };

const maxError = (errors: readonly number[]): number => Math.max(...errors.map(Math.abs));

describe("slot clock with several sources", () => {
  it("follows the freshest source, and measures the lag of the others", () => {
    const behaviors = { grpc: {}, slotsUpdates: { lateMs: 40 }, slot: { lateMs: 180 } };
    const { errors, clock } = run(behaviors, {});
    expect(maxError(errors)).toBe(0);
    const byName = Object.fromEntries(clock.sources(0).map((each) => [each.source, each]));
    expect(byName["grpc"]).toMatchObject({ followed: true, lagMs: 0 });
    expect(byName["slotsUpdates"]).toMatchObject({ followed: false });
    expect(byName["slotsUpdates"]?.lagMs).toBeCloseTo(40);
    expect(byName["slot"]?.lagMs).toBeCloseTo(180);
  });

  it("switches without a jump to a source that is polled rarely", () => {
    const rarely = (slot: number): number | null => (slot % 5 === 0 ? slot : null);
    const { clock, errors } = run(
      { slotsUpdates: {}, polling: { announces: rarely } },
      { slotMs: 400 },
    );
    expect(maxError(errors)).toBe(0);
    const alone = run({ polling: {} }, { clock, slotMs: 400, first: FIRST + 300, slots: 60 });
    expect(maxError(alone.errors)).toBe(0);
  });

  it("switches to a fresher source that starts later", () => {
    const announces = (slot: number) => (slot < FIRST + 50 ? null : slot);
    const { errors, clock } = run({ slot: { lateMs: 600 }, grpc: { announces } }, {});
    expect(errors[49]).toBe(-2);
    expect(maxError(errors.slice(50))).toBe(0);
    expect(clock.sources(0).find(({ followed }) => followed)?.source).toBe("grpc");
  });

  it("continues without a step when the freshest source stops", () => {
    const announces = (slot: number) => (slot < FIRST + 100 ? slot : null);
    const { errors, clock } = run({ grpc: { announces }, slot: { lateMs: 180 } }, {});
    expect(maxError(errors)).toBeLessThanOrEqual(1);
    expect(clock.sources(0).find(({ followed }) => followed)?.source).toBe("slot");
  });

  it("is not held back by a source that repeats one slot", () => {
    const announces = (slot: number) => Math.min(slot, FIRST + 50);
    const { errors } = run({ grpc: { announces }, slotsUpdates: { lateMs: 60 } }, {});
    expect(maxError(errors)).toBe(0);
  });

  it.each([
    ["jumps far ahead", (slot: number) => slot + (slot > FIRST + 100 ? 1_000_000 : 0)],
    ["jumps a little ahead", (slot: number) => slot + (slot > FIRST + 100 ? 40 : 0)],
    ["falls far behind", (slot: number) => slot - (slot > FIRST + 100 ? 5_000 : 0)],
    ["drifts ahead", (slot: number) => slot + Math.floor(Math.max(0, slot - FIRST - 60) / 2)],
    ["runs at twice the rate", (slot: number) => 2 * slot - FIRST],
    ["runs at half the rate", (slot: number) => Math.floor((slot + FIRST) / 2)],
  ])("is not misled by one of two sources that %s", (_, announces) => {
    for (const honest of ["grpc", "polling"] as const) {
      const { errors, clock } = run({ slotsUpdates: { announces }, [honest]: { lateMs: 50 } }, {});
      expect(maxError(errors)).toBeLessThanOrEqual(4);
      expect(maxError(errors.slice(-100))).toBeLessThanOrEqual(1);
      expect(clock.slotTimeMs).toBeCloseTo(250, -1);
    }
  });

  it("recovers with two honest sources if the first event was false", () => {
    const counters = new RouteCounters();
    const clock = createSlotClock({}, counters);
    clock.observe("polled", 9_000_000, 0, "polling");
    const announces = (slot: number) => slot + 9_000_000 - FIRST;
    const { errors } = run({ polling: { announces }, grpc: {}, slot: { lateMs: 100 } }, { clock });
    expect(maxError(errors.slice(5))).toBe(0);
    expect(counters.slotRewinds).toBe(1);
  });

  it.each([
    [
      "the node polled first lags",
      { polling: { announces: (slot: number) => slot - 300 }, grpc: LATE },
    ],
    [
      "the node that reports later lags",
      { polling: {}, grpc: { ...LATE, announces: (slot: number) => slot - 300 } },
    ],
    [
      "all sources of one node lag",
      {
        polling: { announces: (slot: number) => slot - 300 },
        slot: { announces: (slot: number) => slot - 300 },
        grpc: LATE,
      },
    ],
  ] as const)("settles on the source that is ahead if %s", (_, behaviors) => {
    const clock = createSlotClock({ origins: { polling: "a", slot: "a", grpc: "b" } });
    const { errors } = run(behaviors, { clock });
    expect(maxError(errors.slice(10))).toBe(0);
    // After too long without events all sources start again.
    const again = run(behaviors, { clock, first: FIRST + 2_000 });
    expect(maxError(again.errors.slice(10))).toBe(0);
  });

  it("rejects a false new source when all others stop, until their history expires", () => {
    const clock = createSlotClock();
    run({ grpc: {}, slotsUpdates: { lateMs: 30 } }, { clock, slots: 100 });
    const announces = (slot: number) => slot + 1_000_000;
    const { errors } = run({ polling: { announces } }, { clock, first: FIRST + 100, slots: 200 });
    expect(maxError(errors.slice(0, 190))).toBeLessThanOrEqual(1);
    const later = run({ polling: { announces } }, { clock, first: FIRST + 300, slots: 100 });
    expect(later.errors.at(-1)).toBe(1_000_000);
  });

  it("never goes back for a fork, late events or a switch to a slower source", () => {
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

  it("extrapolates over slots that all sources skip", () => {
    const announces = (slot: number) => (slot % 40 >= 36 ? null : slot);
    const { errors } = run({ grpc: { announces }, slot: { lateMs: 180, announces } }, {});
    expect(maxError(errors)).toBe(0);
  });

  it("follows changes of the network's slot time", () => {
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

  it("crosses an epoch boundary without events there", () => {
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
    const announces = (slot: number) => (slot >= 10_098 && slot < 10_102 ? null : slot);
    const { clock } = run({ grpc: { announces }, slot: { announces, lateMs: 90 } }, { slots: 98 });
    const leaders = [97, 98, 99, 100, 101].map((index) => {
      const slot = clock.current((index * 250 + 10) * MS);
      return slot === null ? null : schedule.leaderAt(slot);
    });
    const [second, first] = ["second of 100", "first of 101"];
    expect(leaders).toEqual([second, second, second, first, first]);
  });
});

describe("slot sources of the same node", () => {
  const origins = { slotsUpdates: "a", slot: "a", polling: "a", grpc: "b" };
  const clockOf = (of = {}) => createSlotClock({ origins: of }, new RouteCounters());
  const followed = (clock: ReturnType<typeof clockOf>) =>
    clock.sources(0).find((each) => each.followed)?.source;

  it.each([
    ["jump far ahead", (slot: number) => slot + (slot > FIRST + 100 ? 1_000_000 : 0)],
    ["jump a little ahead", (slot: number) => slot + (slot > FIRST + 100 ? 40 : 0)],
    ["fall far behind", (slot: number) => slot - (slot > FIRST + 100 ? 5_000 : 0)],
    ["drift ahead", (slot: number) => slot + Math.floor(Math.max(0, slot - FIRST - 60) / 2)],
    ["run at half the rate", (slot: number) => Math.floor((slot + FIRST) / 2)],
  ])("do not outvote another node's source if they %s", (_, announces) => {
    const behaviors = {
      slotsUpdates: { announces },
      slot: { announces },
      polling: { announces },
      grpc: {},
    };
    const { errors, clock } = run(behaviors, { clock: clockOf(origins) });
    // One slot more than the tolerance of sources that agree, until they diverge.
    expect(maxError(errors)).toBeLessThanOrEqual(5);
    expect(maxError(errors.slice(-100))).toBeLessThanOrEqual(1);
    expect(followed(clock)).toBe("grpc");
    const separate = run(behaviors, { clock: clockOf() });
    expect(maxError(separate.errors.slice(-100))).toBeGreaterThan(20);
  });

  it("are not outvoted by another node's source", () => {
    const announces = (slot: number) => slot + (slot > FIRST + 100 ? 1_000_000 : 0);
    const honest = { slotsUpdates: {}, slot: {}, polling: {} };
    const { errors, clock } = run({ grpc: { announces }, ...honest }, { clock: clockOf(origins) });
    expect(maxError(errors.slice(0, 100))).toBe(0);
    expect(maxError(errors)).toBeLessThanOrEqual(1);
    expect(followed(clock)).not.toBe("grpc");
  });

  it("share one vote, so that the other two outvote a false one", () => {
    const announces = (slot: number) => slot + (slot > FIRST + 50 ? 30 : 0);
    const behaviors = {
      slotsUpdates: { announces },
      slot: { lateMs: 60 },
      polling: { lateMs: 120 },
    };
    const { errors, clock } = run(behaviors, { clock: clockOf(origins) });
    expect(maxError(errors.slice(-200))).toBe(0);
    expect(followed(clock)).toBe("slot");
    const first = clockOf(origins);
    first.observe("polled", 9_000_000, 0, "polling");
    const falsePolling = { polling: { announces: (slot: number) => slot + 9_000_000 - FIRST } };
    const recovered = run(
      { ...falsePolling, slotsUpdates: {}, slot: { lateMs: 60 } },
      { clock: first },
    );
    expect(maxError(recovered.errors.slice(5))).toBe(0);
  });

  it("are followed even to lower slots once the other node is silent too long", () => {
    const announces = (slot: number) => slot - 2_000;
    const grpc = { announces: (slot: number) => (slot < FIRST + 100 ? slot : null) };
    const a = { slotsUpdates: { announces }, slot: { announces }, polling: { announces } };
    const { errors, clock } = run({ grpc, ...a }, { clock: clockOf(origins) });
    expect(maxError(errors.slice(5, 100))).toBe(0);
    expect(errors.at(-1)).toBe(-2_000);
    expect(followed(clock)).not.toBe("grpc");
  });

  it("are replaced by a fresher source of another node, and followed when it stops", () => {
    const grpc = { announces: (slot: number) => (slot < FIRST + 100 ? slot : null) };
    const a = { slotsUpdates: { lateMs: 150 }, slot: { lateMs: 200 }, polling: { lateMs: 240 } };
    const { errors, clock } = run({ grpc, ...a }, { clock: clockOf(origins) });
    expect(maxError(errors.slice(0, 100))).toBe(0);
    expect(maxError(errors)).toBeLessThanOrEqual(1);
    expect(followed(clock)).toBe("slotsUpdates");
  });
});
