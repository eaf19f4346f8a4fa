import { expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { sleepSync } from "../../src/runtime/sleep-sync.ts";

it("sleeps for the given time, without a wake-up", () => {
  const beforeNs = systemClock.nowNs();
  for (let count = 0; count < 10; count += 1) sleepSync(1);
  expect(systemClock.nowNs() - beforeNs).toBeGreaterThan(8e6);
});
