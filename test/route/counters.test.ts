import { describe, expect, it } from "vitest";
import { createRouteCounters } from "../../src/route/counters.ts";

describe("the counters of route", () => {
  it("begin at zero, and each caller has its own", () => {
    const counters = createRouteCounters();
    expect(Object.values(counters).every((count) => count === 0)).toBe(true);
    counters.slotEvents += 1;
    expect(createRouteCounters().slotEvents).toBe(0);
  });
});
