import { describe, expect, it } from "vitest";
import { epochMessage, readEpochMessage } from "../../../src/cluster/thread/epoch-message.ts";
import { EPOCH_SLOTS_MAX } from "../../../src/core/limits.ts";
import { RouteCounters } from "../../../src/route/counters.ts";
import { createSchedule } from "../../../src/route/schedule.ts";

const epoch = (leaders: Record<string, readonly number[]>, slots = 8) => ({
  epoch: 3,
  firstSlot: 100,
  slots,
  leaders: new Map(Object.entries(leaders)),
});

function passed(source: ReturnType<typeof epoch>) {
  const message = epochMessage(7, source);
  return message === null ? null : readEpochMessage(message);
}

describe("an epoch's message", () => {
  it("has each leader's slots", () => {
    const source = epoch({ a: [0, 1, 4], b: [], c: [7] });
    const { leaders, ...rest } = passed(source) ?? {};
    expect(rest).toEqual({ epoch: 3, firstSlot: 100, slots: 8 });
    expect([...(leaders ?? [])].map(([name, slots]) => [name, [...slots]])).toEqual([
      ["a", [0, 1, 4]],
      ["b", []],
      ["c", [7]],
    ]);
  });

  it("leaves to the router what is no index, which counts it", () => {
    const counters = new RouteCounters();
    const schedule = createSchedule(counters);
    const source = epoch({ a: [1, -1, 1.5, 8, "2" as unknown as number], b: [2] });
    const read = passed(source);
    expect(read !== null && schedule.setEpoch(read)).toBe(true);
    expect(counters.scheduleIndexesInvalid).toBe(4);
    expect([101, 102, 103].map((slot) => schedule.leaderAt(slot))).toEqual(["a", "b", null]);
  });

  it("does not exist for a schedule that no cluster has", () => {
    expect(passed(epoch({ a: [0] }, EPOCH_SLOTS_MAX + 1))).toBeNull();
    expect(passed(epoch({ a: [0, 0, 0], b: [1] }, 3))).toBeNull();
    expect(passed(epoch({ "a\nb": [0] }))).toBeNull();
    expect(passed(epoch({ a: [0, 0], b: [1] }, 3))).not.toBeNull();
  });
});
