import { describe, expect, it } from "vitest";
import { createRouteCounters } from "../../src/route/counters.ts";

describe("route counters", () => {
  it("start at zero and are separate for each caller", () => {
    const counters = createRouteCounters();
    expect(Object.values(counters).every((count) => count === 0)).toBe(true);
    counters.slotEvents += 1;
    expect(createRouteCounters().slotEvents).toBe(0);
  });
});
