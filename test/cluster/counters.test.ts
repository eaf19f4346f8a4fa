import { describe, expect, it } from "vitest";
import { createClusterCounters } from "../../src/cluster/counters.ts";

describe("cluster counters", () => {
  it("start at zero and are separate for each caller", () => {
    const counters = createClusterCounters();
    expect(Object.values(counters).every((count) => count === 0)).toBe(true);
    counters.slotEvents += 1;
    expect(createClusterCounters().slotEvents).toBe(0);
  });
});
