import { expect, it } from "vitest";
import { SlotPace } from "../../src/route/slot-pace.ts";

it("lets slots pass by the clock unless they may stop or are likely to go back", () => {
  const pace = new SlotPace();
  const isByClock = (mayStop: boolean, isBackLikely: boolean): boolean => {
    Object.assign(pace, { mayStop, isBackLikely });
    return pace.isByClock;
  };
  expect(pace.isByClock).toBe(false);
  expect([isByClock(false, false), isByClock(true, false)]).toEqual([true, false]);
  expect([isByClock(false, true), isByClock(true, true)]).toEqual([false, false]);
});
