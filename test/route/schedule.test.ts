import { describe, expect, it } from "vitest";
import { RouteCounters } from "../../src/route/counters.ts";
import { createSchedule } from "../../src/route/schedule.ts";
import { epochOf } from "../support/epochs.ts";
import { fc } from "../support/properties.ts";

describe("leader schedule", () => {
  it("returns the leader of each slot, and null outside its epochs", () => {
    const schedule = createSchedule();
    schedule.setEpoch(epochOf(7, 700, "ABC"));
    expect(schedule.leaderAt(699)).toBeNull();
    expect(schedule.leaderAt(700)).toBe("A");
    expect(schedule.leaderAt(703)).toBe("A");
    expect(schedule.leaderAt(704)).toBe("B");
    expect(schedule.leaderAt(711)).toBe("C");
    expect(schedule.leaderAt(712)).toBeNull();
    expect(schedule.covers(711)).toBe(true);
    expect(schedule.covers(712)).toBe(false);
  });

  it("keeps the newest three epochs", () => {
    const schedule = createSchedule();
    for (const epoch of [3, 1, 2, 4]) schedule.setEpoch(epochOf(epoch, epoch * 12, "ABC"));
    expect(schedule.epochs).toEqual([2, 3, 4]);
    expect(schedule.leaderAt(12)).toBeNull();
    expect(schedule.leaderAt(24)).toBe("A");
  });

  it("accepts lower epochs after clear(), as of a restarted cluster", () => {
    const schedule = createSchedule();
    for (const epoch of [7, 8, 9]) schedule.setEpoch(epochOf(epoch, epoch * 12, "ABC"));
    schedule.clear();
    expect(schedule.epochs).toEqual([]);
    expect(schedule.leaderAt(84)).toBeNull();
    expect(schedule.shareOf("A")).toBe(0);
    for (const epoch of [0, 1]) schedule.setEpoch(epochOf(epoch, epoch * 12, "DEF"));
    expect(schedule.leaderAt(12)).toBe("D");
  });

  it("replaces an epoch that is already set", () => {
    const schedule = createSchedule();
    schedule.setEpoch(epochOf(1, 0, "AB"));
    schedule.setEpoch(epochOf(1, 0, "CD"));
    expect(schedule.epochs).toEqual([1]);
    expect(schedule.leaderAt(0)).toBe("C");
  });

  it("rejects invalid epochs and skips indexes outside the epoch", () => {
    const counters = new RouteCounters();
    const schedule = createSchedule(counters);
    const good = epochOf(1, 0, "AB");
    for (const bad of [
      { ...good, slots: 0 },
      { ...good, slots: 1_000_001 },
      { ...good, slots: 1.5 },
      { ...good, epoch: -1 },
      { ...good, firstSlot: Number.NaN },
      { ...good, leaders: new Map() },
    ]) {
      expect(schedule.setEpoch(bad)).toBe(false);
    }
    expect(counters.epochsRejected).toBe(6);
    schedule.setEpoch({ ...good, leaders: new Map([["A", [0, -1, 8, 0.5, 7]]]) });
    expect(counters.scheduleIndexesInvalid).toBe(3);
    expect(schedule.leaderAt(7)).toBe("A");
    expect(schedule.leaderAt(3)).toBeNull();
  });

  it("holds an epoch of mainnet size with any order of leaders", () => {
    const order = fc.array(fc.integer({ min: 0, max: 999 }), { minLength: 20, maxLength: 20 });
    fc.assert(
      fc.property(order, (leaders) => {
        const map = new Map<string, number[]>();
        leaders.forEach((leader, window) => {
          const indexes = map.get(`id${leader}`) ?? [];
          indexes.push(window * 4, window * 4 + 1, window * 4 + 2, window * 4 + 3);
          map.set(`id${leader}`, indexes);
        });
        const schedule = createSchedule();
        schedule.setEpoch({ epoch: 9, firstSlot: 432_000 * 9, slots: 432_000, leaders: map });
        leaders.forEach((leader, window) => {
          expect(schedule.leaderAt(432_000 * 9 + window * 4 + 2)).toBe(`id${leader}`);
        });
      }),
      { numRuns: 20 },
    );
  });

  it("accepts more leaders than 16 bits can index", () => {
    const leaders = new Map<string, number[]>();
    for (let index = 0; index < 70_000; index += 1) leaders.set(`id${index}`, [index]);
    const schedule = createSchedule();
    expect(schedule.setEpoch({ epoch: 0, firstSlot: 0, slots: 70_000, leaders })).toBe(true);
    expect(schedule.leaderAt(69_999)).toBe("id69999");
  });
});
