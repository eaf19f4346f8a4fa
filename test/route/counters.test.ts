import { describe, expect, it } from "vitest";
import { RouteCounters } from "../../src/route/counters.ts";

describe("route counters", () => {
  it("start at zero and are separate for each caller", () => {
    const counters = new RouteCounters();
    expect(Object.values(counters).every((count) => count === 0)).toBe(true);
    counters.slotEvents += 1;
    expect(new RouteCounters().slotEvents).toBe(0);
  });
});
