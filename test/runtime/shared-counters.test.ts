/** Counters in shared memory, and their sums. */

import { describe, expect, it } from "vitest";
import { figuresMemory, sharedFigures, sumOf } from "../../src/runtime/shared-counters.ts";

const NAMES = ["requests", "refused"] as const;

describe("figures in shared memory", () => {
  it("are counted on one side and read on the other", () => {
    const memory = figuresMemory(NAMES.length);
    const [here, there] = [sharedFigures(NAMES, memory), sharedFigures(NAMES, memory)];
    here.requests += 1;
    here.requests += 1;
    here.refused += 1;
    expect({ ...there }).toEqual({ requests: 2, refused: 1 });
  });

  it("lie beside others in the same memory", () => {
    const memory = figuresMemory(4);
    const first = sharedFigures(NAMES, memory);
    const second = sharedFigures(NAMES, memory, 2);
    first.refused = 5;
    second.requests = 7;
    expect([{ ...first }, { ...second }]).toEqual([
      { requests: 0, refused: 5 },
      { requests: 7, refused: 0 },
    ]);
  });

  it("sum up as they are at the moment of asking", () => {
    const all = [1, 2, 3].map(() => sharedFigures(NAMES, figuresMemory(NAMES.length)));
    const sums = sumOf(NAMES, all);
    for (const [index, figures] of all.entries()) figures.requests = index + 1;
    expect({ ...sums }).toEqual({ requests: 6, refused: 0 });
    for (const figures of all) figures.refused += 1;
    expect(sums.refused).toBe(3);
  });
});
