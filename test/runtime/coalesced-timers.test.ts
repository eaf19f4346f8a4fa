/** Timers that can be early go off together, the others when they are due. */

import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { createRounds, ROUND_LATE_MS, ROUND_MS } from "../../src/runtime/coalesced-timers.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** Begins at a round; `told` is what went off, with the time since then in milliseconds. */
function setUp() {
  const startNs = 10 * ROUND_MS * NS_PER_MS;
  const clock = createFakeClock(startNs);
  const befores: number[] = [];
  const told: (readonly [string, number])[] = [];
  const nowMs = (): number => (clock.nowNs() - startNs) / NS_PER_MS;
  const rounds = createRounds(clock, () => befores.push(nowMs()));
  const tell = (name: string) => (): void => void told.push([name, nowMs()]);
  return { clock, rounds, befores, told, tell };
}

describe("rounds", () => {
  it("take together what is due before the next one, in the order of asking", () => {
    const { clock, rounds, befores, told, tell } = setUp();
    clock.advance(30);
    rounds.after(ROUND_MS, tell("a"));
    rounds.after(2 * ROUND_MS - 50, tell("b"));
    rounds.after(2 * ROUND_MS, tell("c"));
    rounds.every(ROUND_MS + 20, tell("d"));
    expect(clock.pending).toBe(1);
    clock.advance(2 * ROUND_MS - 30);
    expect(told).toEqual([
      ["a", ROUND_MS],
      ["b", ROUND_MS],
      ["d", ROUND_MS],
      ["c", 2 * ROUND_MS],
      ["d", 2 * ROUND_MS],
    ]);
    expect(befores).toEqual([ROUND_MS, 2 * ROUND_MS]);
  });

  it("give each its own turn of the event loop", () => {
    const { clock, rounds, told, tell } = setUp();
    rounds.after(ROUND_MS, () => {
      tell("a")();
      clock.after(0, tell("socket"));
    });
    rounds.after(ROUND_MS, tell("b"));
    rounds.after(ROUND_MS, tell("c"));
    clock.advance(ROUND_MS);
    expect(told.map(([name]) => name)).toEqual(["a", "socket", "b", "c"]);
  });

  it("leave what is due sooner to the clock", () => {
    const { clock, rounds, befores, told, tell } = setUp();
    rounds.after(ROUND_MS - 1, tell("once"));
    const timer = rounds.every(ROUND_MS / 2, tell("often"));
    clock.advance(ROUND_MS);
    timer.cancel();
    clock.advance(ROUND_MS);
    expect(told).toEqual([
      ["often", ROUND_MS / 2],
      ["once", ROUND_MS - 1],
      ["often", ROUND_MS],
    ]);
    expect(befores).toEqual([]);
  });

  it("keep a period that is a multiple, and any other on average", () => {
    const { clock, rounds, told, tell } = setUp();
    rounds.every(2 * ROUND_MS, tell("even"));
    rounds.every(2.5 * ROUND_MS, tell("odd"));
    clock.advance(10 * ROUND_MS);
    const timesOf = (wanted: string): number[] =>
      told.filter(([name]) => name === wanted).map(([, atMs]) => atMs / ROUND_MS);
    expect(timesOf("even")).toEqual([2, 4, 6, 8, 10]);
    expect(timesOf("odd")).toEqual([2, 5, 7, 10]);
  });

  it("are not asked twice by who asks again as it goes off, be it a little late", () => {
    const { clock, rounds, told, tell } = setUp();
    const again = (): void => {
      tell("look")();
      clock.advance(ROUND_LATE_MS);
      rounds.after(ROUND_MS, again);
    };
    rounds.after(ROUND_MS, again);
    clock.advance(3 * ROUND_MS);
    expect(told.map(([, atMs]) => atMs)).toEqual([ROUND_MS, 2 * ROUND_MS, 3 * ROUND_MS]);
  });

  it("tell nobody who has cancelled, not even in the round itself", () => {
    const { clock, rounds, told, tell } = setUp();
    rounds.after(ROUND_MS, tell("never")).cancel();
    rounds.after(ROUND_MS, () => {
      tell("first")();
      second.cancel();
      third.cancel();
    });
    const second = rounds.after(ROUND_MS, tell("second"));
    const third = rounds.every(ROUND_MS, tell("third"));
    clock.advance(10 * ROUND_MS);
    expect(told).toEqual([["first", ROUND_MS]]);
    expect(clock.pending).toBe(0);
  });

  it("do not make up for what was missed", () => {
    const { clock, told, tell } = setUp();
    // As on a machine that slept.
    const slept = { ns: 0 };
    const rounds = createRounds({ ...clock, nowNs: () => clock.nowNs() + slept.ns });
    rounds.every(ROUND_MS, () => {
      tell("tick")();
      slept.ns = 7.5 * ROUND_MS * NS_PER_MS;
    });
    clock.advance(4 * ROUND_MS);
    expect(told.map(([, atMs]) => atMs / ROUND_MS)).toEqual([1, 2, 2.5, 3.5]);
  });
});
