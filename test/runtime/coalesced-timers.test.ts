/** Timers that may be early fire together, the others when they are due. */

import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import {
  COALESCE_LATE_MS,
  COALESCE_MS,
  createCoalescedClock,
} from "../../src/runtime/coalesced-timers.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** Begins at a round; `told` holds the fired timers, with the time since then in milliseconds. */
function setUp() {
  const startNs = 10 * COALESCE_MS * NS_PER_MS;
  const clock = createFakeClock(startNs);
  const beforeTicks: number[] = [];
  const told: (readonly [string, number])[] = [];
  const nowMs = (): number => (clock.nowNs() - startNs) / NS_PER_MS;
  const coalescedClock = createCoalescedClock(clock, () => beforeTicks.push(nowMs()));
  const tell = (name: string) => (): void => void told.push([name, nowMs()]);
  return { clock, coalescedClock, beforeTicks, told, tell };
}

describe("rounds", () => {
  it("take together what is due before the next one, in the order of asking", () => {
    const { clock, coalescedClock, beforeTicks, told, tell } = setUp();
    clock.advance(30);
    coalescedClock.after(COALESCE_MS, tell("a"));
    coalescedClock.after(2 * COALESCE_MS - 50, tell("b"));
    coalescedClock.after(2 * COALESCE_MS, tell("c"));
    coalescedClock.every(COALESCE_MS + 20, tell("d"));
    expect(clock.pending).toBe(1);
    clock.advance(2 * COALESCE_MS - 30);
    expect(told).toEqual([
      ["a", COALESCE_MS],
      ["b", COALESCE_MS],
      ["d", COALESCE_MS],
      ["c", 2 * COALESCE_MS],
      ["d", 2 * COALESCE_MS],
    ]);
    expect(beforeTicks).toEqual([COALESCE_MS, 2 * COALESCE_MS]);
  });

  it("give each its own turn of the event loop", () => {
    const { clock, coalescedClock, told, tell } = setUp();
    coalescedClock.after(COALESCE_MS, () => {
      tell("a")();
      clock.after(0, tell("socket"));
    });
    coalescedClock.after(COALESCE_MS, tell("b"));
    coalescedClock.after(COALESCE_MS, tell("c"));
    clock.advance(COALESCE_MS);
    expect(told.map(([name]) => name)).toEqual(["a", "socket", "b", "c"]);
  });

  it("leave what is due sooner to the clock", () => {
    const { clock, coalescedClock, beforeTicks, told, tell } = setUp();
    coalescedClock.after(COALESCE_MS - 1, tell("once"));
    const timer = coalescedClock.every(COALESCE_MS / 2, tell("often"));
    clock.advance(COALESCE_MS);
    timer.cancel();
    clock.advance(COALESCE_MS);
    expect(told).toEqual([
      ["often", COALESCE_MS / 2],
      ["once", COALESCE_MS - 1],
      ["often", COALESCE_MS],
    ]);
    expect(beforeTicks).toEqual([]);
  });

  it("keep a period that is a multiple, and any other on average", () => {
    const { clock, coalescedClock, told, tell } = setUp();
    coalescedClock.every(2 * COALESCE_MS, tell("even"));
    coalescedClock.every(2.5 * COALESCE_MS, tell("odd"));
    clock.advance(10 * COALESCE_MS);
    const timesOf = (wanted: string): number[] =>
      told.filter(([name]) => name === wanted).map(([, atMs]) => atMs / COALESCE_MS);
    expect(timesOf("even")).toEqual([2, 4, 6, 8, 10]);
    expect(timesOf("odd")).toEqual([2, 5, 7, 10]);
  });

  it("are not asked twice by who asks again as it goes off, be it a little late", () => {
    const { clock, coalescedClock, told, tell } = setUp();
    const again = (): void => {
      tell("look")();
      clock.advance(COALESCE_LATE_MS);
      coalescedClock.after(COALESCE_MS, again);
    };
    coalescedClock.after(COALESCE_MS, again);
    clock.advance(3 * COALESCE_MS);
    expect(told.map(([, atMs]) => atMs)).toEqual([COALESCE_MS, 2 * COALESCE_MS, 3 * COALESCE_MS]);
  });

  it("tell nobody who has cancelled, not even in the round itself", () => {
    const { clock, coalescedClock, told, tell } = setUp();
    coalescedClock.after(COALESCE_MS, tell("never")).cancel();
    coalescedClock.after(COALESCE_MS, () => {
      tell("first")();
      second.cancel();
      third.cancel();
    });
    const second = coalescedClock.after(COALESCE_MS, tell("second"));
    const third = coalescedClock.every(COALESCE_MS, tell("third"));
    clock.advance(10 * COALESCE_MS);
    expect(told).toEqual([["first", COALESCE_MS]]);
    expect(clock.pending).toBe(0);
  });

  it("do not make up for what was missed", () => {
    const { clock, told, tell } = setUp();
    // As on a machine that was suspended.
    const slept = { ns: 0 };
    const coalescedClock = createCoalescedClock({
      ...clock,
      nowNs: () => clock.nowNs() + slept.ns,
    });
    coalescedClock.every(COALESCE_MS, () => {
      tell("tick")();
      slept.ns = 7.5 * COALESCE_MS * NS_PER_MS;
    });
    clock.advance(4 * COALESCE_MS);
    expect(told.map(([, atMs]) => atMs / COALESCE_MS)).toEqual([1, 2, 2.5, 3.5]);
  });
});
