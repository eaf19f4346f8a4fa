import { describe, expect, it } from "vitest";
import { createTurns } from "../../src/runtime/time-slice.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** Work of so many shares, and how many of them are done. */
function workOf(shares: number) {
  const clock = createFakeClock();
  const work = { done: 0 };
  const turns = createTurns(clock, () => {
    work.done += 1;
    return work.done < shares;
  });
  return { clock, work, turns };
}

describe("work in turns", () => {
  it("does its first share at once and one in each turn after it", () => {
    const { clock, work, turns } = workOf(3);
    turns.begin();
    expect([work.done, turns.isBusy, clock.pending]).toEqual([1, true, 1]);
    clock.advance(0);
    expect([work.done, turns.isBusy, clock.pending]).toEqual([3, false, 0]);
  });

  it("takes no timer where one share is all", () => {
    const { clock, work, turns } = workOf(1);
    turns.begin();
    expect([work.done, turns.isBusy, clock.pending]).toEqual([1, false, 0]);
  });

  it("is not begun again while shares are left", () => {
    const { work, turns } = workOf(5);
    turns.begin();
    turns.begin();
    expect(work.done).toBe(1);
  });

  it("is finished at once where that is asked for, and only what was begun", () => {
    const { clock, work, turns } = workOf(4);
    turns.finish();
    expect(work.done).toBe(0);
    turns.begin();
    turns.finish();
    expect([work.done, turns.isBusy, clock.pending]).toEqual([4, false, 0]);
  });

  it("leaves the rest undone when it is stopped", () => {
    const { clock, work, turns } = workOf(4);
    turns.begin();
    turns.stop();
    clock.advance(10);
    expect([work.done, turns.isBusy, clock.pending]).toEqual([1, false, 0]);
  });
});
