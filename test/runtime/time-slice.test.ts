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

describe("time-sliced work", () => {
  it("runs its first slice immediately and one in each later turn", () => {
    const { clock, work, slicer } = workOf(3);
    slicer.start();
    expect([work.done, slicer.isBusy, clock.pending]).toEqual([1, true, 1]);
    clock.advance(0);
    expect([work.done, slicer.isBusy, clock.pending]).toEqual([3, false, 0]);
  });

  it("uses no timer when one slice is enough", () => {
    const { clock, work, slicer } = workOf(1);
    slicer.start();
    expect([work.done, slicer.isBusy, clock.pending]).toEqual([1, false, 0]);
  });

  it("is not started again while slices are left", () => {
    const { work, slicer } = workOf(5);
    slicer.start();
    slicer.start();
    expect(work.done).toBe(1);
  });

  it("is finished immediately on request, and only when it was started", () => {
    const { clock, work, slicer } = workOf(4);
    slicer.finish();
    expect(work.done).toBe(0);
    slicer.start();
    slicer.finish();
    expect([work.done, slicer.isBusy, clock.pending]).toEqual([4, false, 0]);
  });

  it("drops the rest when it is stopped", () => {
    const { clock, work, slicer } = workOf(4);
    slicer.start();
    slicer.stop();
    clock.advance(10);
    expect([work.done, slicer.isBusy, clock.pending]).toEqual([1, false, 0]);
  });
});
