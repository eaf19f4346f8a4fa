import { describe, expect, it } from "vitest";
import { ClusterCounters } from "../../src/cluster/counters.ts";

describe("cluster counters", () => {
  it("start at zero and are separate for each caller", () => {
    const counters = new ClusterCounters();
    expect(Object.values(counters).every((count) => count === 0)).toBe(true);
    counters.slotEvents += 1;
    expect(new ClusterCounters().slotEvents).toBe(0);
  });
});
