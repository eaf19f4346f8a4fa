import { describe, expect, it } from "vitest";
import { createTimeSlicer } from "../../src/runtime/time-slice.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** Work in `shares` parts, and the number of finished parts. */
function workOf(shares: number) {
  const clock = createFakeClock();
  const work = { done: 0 };
  const slicer = createTimeSlicer(clock, () => {
    work.done += 1;
    return work.done < shares;
  });
  return { clock, work, slicer };
}

describe("work in turns", () => {
  it("does its first share at once and one in each turn after it", () => {
    const { clock, work, slicer } = workOf(3);
    slicer.start();
    expect([work.done, slicer.isBusy, clock.pending]).toEqual([1, true, 1]);
    clock.advance(0);
    expect([work.done, slicer.isBusy, clock.pending]).toEqual([3, false, 0]);
  });

  it("takes no timer where one share is all", () => {
    const { clock, work, slicer } = workOf(1);
    slicer.start();
    expect([work.done, slicer.isBusy, clock.pending]).toEqual([1, false, 0]);
  });

  it("is not begun again while shares are left", () => {
    const { work, slicer } = workOf(5);
    slicer.start();
    slicer.start();
    expect(work.done).toBe(1);
  });

  it("is finished at once where that is asked for, and only what was begun", () => {
    const { clock, work, slicer } = workOf(4);
    slicer.finish();
    expect(work.done).toBe(0);
    slicer.start();
    slicer.finish();
    expect([work.done, slicer.isBusy, clock.pending]).toEqual([4, false, 0]);
  });

  it("leaves the rest undone when it is stopped", () => {
    const { clock, work, slicer } = workOf(4);
    slicer.start();
    slicer.stop();
    clock.advance(10);
    expect([work.done, slicer.isBusy, clock.pending]).toEqual([1, false, 0]);
  });
});
