import { describe, expect, it } from "vitest";
import { createClusterCounters } from "../../src/cluster/counters.ts";

describe("the counters of chain", () => {
  it("begin at zero, and each caller has its own", () => {
    const counters = createClusterCounters();
    expect(Object.values(counters).every((count) => count === 0)).toBe(true);
    counters.slotEvents += 1;
    expect(createClusterCounters().slotEvents).toBe(0);
  });
});
