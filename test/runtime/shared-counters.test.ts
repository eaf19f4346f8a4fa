/** Counters in shared memory, and their sums. */

import { describe, expect, it } from "vitest";
import { countersMemory, sharedCounters, sumOf } from "../../src/runtime/shared-counters.ts";

const NAMES = ["requests", "refused"] as const;

describe("counters in shared memory", () => {
  it("are incremented on one side and read on the other", () => {
    const memory = countersMemory(NAMES.length);
    const [here, there] = [sharedCounters(NAMES, memory), sharedCounters(NAMES, memory)];
    here.requests += 1;
    here.requests += 1;
    here.refused += 1;
    expect({ ...there }).toEqual({ requests: 2, refused: 1 });
  });

  it("can share memory with others", () => {
    const memory = countersMemory(4);
    const first = sharedCounters(NAMES, memory);
    const second = sharedCounters(NAMES, memory, 2);
    first.refused = 5;
    second.requests = 7;
    expect([{ ...first }, { ...second }]).toEqual([
      { requests: 0, refused: 5 },
      { requests: 7, refused: 0 },
    ]);
  });

  it("are summed when they are read", () => {
    const all = [1, 2, 3].map(() => sharedCounters(NAMES, countersMemory(NAMES.length)));
    const sums = sumOf(NAMES, all);
    for (const [index, counters] of all.entries()) counters.requests = index + 1;
    expect({ ...sums }).toEqual({ requests: 6, refused: 0 });
    for (const counters of all) counters.refused += 1;
    expect(sums.refused).toBe(3);
  });
});
