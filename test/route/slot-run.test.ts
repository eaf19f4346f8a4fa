import { describe, expect, it } from "vitest";
import { SLOT_RUN_LATE, SLOT_RUN_STEP_MAX } from "../../src/route/limits.ts";
import { SlotPace } from "../../src/route/slot-pace.ts";
import { SlotRun } from "../../src/route/slot-run.ts";

const MS = 1_000_000;

/** The times at which a run of these events suffices, in milliseconds, with slots of 250 ms. */
function sufficient(...events: readonly (readonly [slot: number, atMs: number])[]): number[] {
  const run = new SlotRun();
  return events.flatMap(([slot, atMs]) => (run.add(slot, atMs * MS, 250) ? [atMs] : []));
}

describe("run of events", () => {
  it("suffices from three slots and 0.6 s on", () => {
    expect(sufficient([10, 0], [11, 300], [12, 599])).toEqual([]);
    expect(sufficient([10, 0], [11, 300], [12, 600], [13, 850])).toEqual([600, 850]);
    expect(sufficient([10, 0], [11, 700])).toEqual([]);
    expect(sufficient([10, 0], [10, 300], [10, 700], [11, 900])).toEqual([]);
  });

  it("counts a slot only 40 % of a slot time after the one before", () => {
    expect(sufficient([10, 0], [11, 99], [12, 700])).toEqual([]);
    expect(sufficient([10, 0], [11, 100], [12, 700])).toEqual([700]);
    expect(sufficient([10, 0], [11, 1], [12, 2], [13, 3], [14, 700])).toEqual([]);
  });

  it("continues after a late event, and begins again after an earlier one", () => {
    const late = 11 - SLOT_RUN_LATE;
    expect(sufficient([10, 0], [11, 250], [late, 400], [12, 600])).toEqual([600]);
    expect(sufficient([10, 0], [11, 250], [late - 1, 400], [12, 600])).toEqual([]);
  });

  it("begins again after a jump", () => {
    expect(sufficient([10, 0], [11, 250], [11 + SLOT_RUN_STEP_MAX, 600])).toEqual([600]);
    expect(sufficient([10, 0], [11, 250], [12 + SLOT_RUN_STEP_MAX, 600])).toEqual([]);
  });

  it("needs less while slots are likely to go back, and never suffices by the clock", () => {
    const pace = new SlotPace();
    const suffices = (): boolean => {
      const run = new SlotRun(pace);
      run.add(10, 0, 250);
      return run.add(11, 150 * MS, 250);
    };
    expect(suffices()).toBe(false);
    pace.isBackLikely = true;
    expect(suffices()).toBe(true);
    pace.mayStop = false;
    expect(suffices()).toBe(true);
    pace.isBackLikely = false;
    const run = new SlotRun(pace);
    expect([10, 11, 12, 13, 14].map((slot) => run.add(slot, slot * 300 * MS, 250))).not.toContain(
      true,
    );
  });

  it("goes on over the slots that pass between two answers to polls, and not over more", () => {
    const suffices = (slot: number): boolean => {
      const run = new SlotRun();
      run.add(10, 0, 200, true);
      return run.add(slot, 2_000 * MS, 200, true);
    };
    expect([20, 18 + SLOT_RUN_STEP_MAX].map(suffices)).toEqual([true, true]);
    expect(suffices(21 + SLOT_RUN_STEP_MAX)).toBe(false);
  });

  it("suffices from two answers to polls and 0.3 s on", () => {
    const suffices = (ms: number) => {
      const run = new SlotRun();
      run.add(10, 0, 250, true);
      return run.add(11, ms * MS, 250, true);
    };
    expect([299, 300].map(suffices)).toEqual([false, true]);
  });

  it("needs ten slots' time for half a minute after the second one that was refuted", () => {
    const suffices = (runMs: number, sinceMs: number, isBackLikely = false) => {
      const pace = new SlotPace();
      pace.isBackLikely = isBackLikely;
      const run = new SlotRun(pace);
      for (const ms of [0, 100]) {
        run.add(10, ms * MS, 250);
        run.refute(ms * MS);
        // Without a run there is nothing to refute.
        run.refute(ms * MS);
      }
      const fromMs = sinceMs;
      run.add(20, fromMs * MS, 250);
      run.add(21, (fromMs + 300) * MS, 250);
      return run.add(22, (fromMs + runMs) * MS, 250);
    };
    expect([2_499, 2_500].map((ms) => suffices(ms, 1_000))).toEqual([false, true]);
    expect(suffices(700, 1_000, true)).toBe(false);
    expect([29_300, 29_301].map((ms) => suffices(700, ms))).toEqual([false, true]);
  });

  it("never suffices if it continues those that were refuted", () => {
    const suffices = (first: number) => {
      const run = new SlotRun();
      for (const ms of [0, 250]) {
        run.add(10 + ms / 250, ms * MS, 250);
        run.refute(ms * MS);
      }
      return Array.from({ length: 40 }, (_, at) => run.add(first + at, (500 + at * 250) * MS, 250));
    };
    expect(suffices(12)).not.toContain(true);
    expect(suffices(16)).not.toContain(true);
    expect(suffices(17)).toContain(true);
  });

  it("begins again after a reset, and keeps when it began", () => {
    const run = new SlotRun();
    run.add(10, 5 * MS, 250);
    run.add(11, 300 * MS, 250);
    run.reset();
    expect(run.sinceNs).toBe(5 * MS);
    expect(run.add(12, 700 * MS, 250)).toBe(false);
    expect(run.sinceNs).toBe(700 * MS);
  });
});
