/** Timers that may be early fire together, the others when they are due. */

import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import {
  COALESCE_LATE_MS,
  COALESCE_MS,
  createCoalescedClock,
} from "../../src/runtime/coalesced-timers.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** Begins at a round; `fired` holds the fired timers, with the time since then in milliseconds. */
function setUp() {
  const startNs = 10 * COALESCE_MS * NS_PER_MS;
  const clock = createFakeClock(startNs);
  const beforeTicks: number[] = [];
  const fired: (readonly [string, number])[] = [];
  const nowMs = (): number => (clock.nowNs() - startNs) / NS_PER_MS;
  const coalescedClock = createCoalescedClock(clock, () => beforeTicks.push(nowMs()));
  const record = (name: string) => (): void => void fired.push([name, nowMs()]);
  return { clock, coalescedClock, beforeTicks, fired, record };
}

describe("coalesced timers", () => {
  it("fire together what is due before the next round, in order of creation", () => {
    const { clock, coalescedClock, beforeTicks, fired, record } = setUp();
    clock.advance(30);
    coalescedClock.after(COALESCE_MS, record("a"));
    coalescedClock.after(2 * COALESCE_MS - 50, record("b"));
    coalescedClock.after(2 * COALESCE_MS, record("c"));
    coalescedClock.every(COALESCE_MS + 20, record("d"));
    expect(clock.pending).toBe(1);
    clock.advance(2 * COALESCE_MS - 30);
    expect(fired).toEqual([
      ["a", COALESCE_MS],
      ["b", COALESCE_MS],
      ["d", COALESCE_MS],
      ["c", 2 * COALESCE_MS],
      ["d", 2 * COALESCE_MS],
    ]);
    expect(beforeTicks).toEqual([COALESCE_MS, 2 * COALESCE_MS]);
  });

  it("fire each timer in its own turn of the event loop", () => {
    const { clock, coalescedClock, fired, record } = setUp();
    coalescedClock.after(COALESCE_MS, () => {
      record("a")();
      clock.after(0, record("socket"));
    });
    coalescedClock.after(COALESCE_MS, record("b"));
    coalescedClock.after(COALESCE_MS, record("c"));
    clock.advance(COALESCE_MS);
    expect(fired.map(([name]) => name)).toEqual(["a", "socket", "b", "c"]);
  });

  it("leave earlier timers to the clock", () => {
    const { clock, coalescedClock, beforeTicks, fired, record } = setUp();
    coalescedClock.after(COALESCE_MS - 1, record("once"));
    const timer = coalescedClock.every(COALESCE_MS / 2, record("often"));
    clock.advance(COALESCE_MS);
    timer.cancel();
    clock.advance(COALESCE_MS);
    expect(fired).toEqual([
      ["often", COALESCE_MS / 2],
      ["once", COALESCE_MS - 1],
      ["often", COALESCE_MS],
    ]);
    expect(beforeTicks).toEqual([]);
  });

  it("keep a period that is a multiple, and any other on average", () => {
    const { clock, coalescedClock, fired, record } = setUp();
    coalescedClock.every(2 * COALESCE_MS, record("even"));
    coalescedClock.every(2.5 * COALESCE_MS, record("odd"));
    clock.advance(10 * COALESCE_MS);
    const timesOf = (wanted: string): number[] =>
      fired.filter(([name]) => name === wanted).map(([, atMs]) => atMs / COALESCE_MS);
    expect(timesOf("even")).toEqual([2, 4, 6, 8, 10]);
    expect(timesOf("odd")).toEqual([2, 5, 7, 10]);
  });

  it("do not fire twice for a timer set again when it fires, even a little late", () => {
    const { clock, coalescedClock, fired, record } = setUp();
    const again = (): void => {
      record("look")();
      clock.advance(COALESCE_LATE_MS);
      coalescedClock.after(COALESCE_MS, again);
    };
    coalescedClock.after(COALESCE_MS, again);
    clock.advance(3 * COALESCE_MS);
    expect(fired.map(([, atMs]) => atMs)).toEqual([COALESCE_MS, 2 * COALESCE_MS, 3 * COALESCE_MS]);
  });

  it("do not fire cancelled timers, even when cancelled in the same round", () => {
    const { clock, coalescedClock, fired, record } = setUp();
    coalescedClock.after(COALESCE_MS, record("never")).cancel();
    coalescedClock.after(COALESCE_MS, () => {
      record("first")();
      second.cancel();
      third.cancel();
    });
    const second = coalescedClock.after(COALESCE_MS, record("second"));
    const third = coalescedClock.every(COALESCE_MS, record("third"));
    clock.advance(10 * COALESCE_MS);
    expect(fired).toEqual([["first", COALESCE_MS]]);
    expect(clock.pending).toBe(0);
  });

  it("do not catch up on missed periods", () => {
    const { clock, fired, record } = setUp();
    // As on a machine that was suspended.
    const slept = { ns: 0 };
    const coalescedClock = createCoalescedClock({
      ...clock,
      nowNs: () => clock.nowNs() + slept.ns,
    });
    coalescedClock.every(COALESCE_MS, () => {
      record("tick")();
      slept.ns = 7.5 * COALESCE_MS * NS_PER_MS;
    });
    clock.advance(4 * COALESCE_MS);
    expect(fired.map(([, atMs]) => atMs / COALESCE_MS)).toEqual([1, 2, 2.5, 3.5]);
  });
});
