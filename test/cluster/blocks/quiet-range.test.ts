import { describe, expect, it } from "vitest";
import { createQuietRange } from "../../../src/cluster/blocks/quiet-range.ts";
import { QUIET_BACK_SLOTS_MAX } from "../../../src/cluster/limits.ts";
import { observedQuietRange } from "./fixture.ts";

/** A range that has these slots and counts from responses, in this order. */
function rangeOf(...responses: readonly (readonly [slot: number, count: number | null])[]) {
  const range = observedQuietRange();
  for (const [slot, count] of responses) range.observe(slot, count);
  return range;
}

describe("quiet range", () => {
  it("is empty after the first slot, up to the last one with the same count", () => {
    const range = rangeOf([100, 7], [103, 7], [110, 7]);
    expect(range.contentOf(101, 110)).toBe("empty");
    expect(range.contentOf(104, 108)).toBe("empty");
    expect(range.contentOf(101, 111)).toBe("pending");
    expect(range.contentOf(99, 110)).toBe("unknown");
    expect(range.busySlot).toBeNull();
  });

  it("reports each new range, and nothing while it stays", () => {
    const ranges: unknown[] = [];
    const range = createQuietRange((each) => ranges.push(each));
    for (const slot of [100, 103, 103, 101]) range.observe(slot, 7);
    range.observe(104, 8);
    expect(ranges).toEqual([
      { first: 100, last: 100 },
      { first: 100, last: 103 },
      { first: 104, last: 104 },
    ]);
  });

  it("is unknown from the first slot on, whose block the count includes", () => {
    expect(rangeOf([100, 7], [110, 7]).contentOf(100, 110)).toBe("unknown");
    expect(rangeOf([100, 7], [103, 8], [110, 8]).contentOf(103, 110)).toBe("unknown");
  });

  it("starts again at the block whose count is another one, and that block is busy", () => {
    const range = rangeOf([100, 7], [103, 8], [106, 8]);
    expect(range.contentOf(101, 106)).toBe("unknown");
    expect(range.contentOf(104, 106)).toBe("empty");
    expect(range.busySlot).toBe(103);
  });

  it("is unknown before the first count, and if the node returns none", () => {
    expect(rangeOf().contentOf(1, 1)).toBe("unknown");
    expect(rangeOf([100, null], [101, null]).contentOf(100, 101)).toBe("unknown");
    expect(rangeOf([100, 7], [101, null]).contentOf(101, 101)).toBe("pending");
  });

  it("is not changed by a node that lags behind with the same count", () => {
    const range = rangeOf([100, 7], [110, 7], [104, 7], [95, 6]);
    expect(range.contentOf(101, 110)).toBe("empty");
  });

  it("starts again at its end if a node reports another count within it", () => {
    const range = rangeOf([100, 7], [110, 7], [104, 6]);
    expect(range.contentOf(104, 110)).toBe("unknown");
    expect(range.contentOf(111, 112)).toBe("pending");
  });

  it("starts again if the cluster uses slot numbers again", () => {
    const reused = 100 - QUIET_BACK_SLOTS_MAX - 1;
    const range = rangeOf([100, 7], [110, 7], [reused, 3], [reused + 2, 3]);
    expect(range.contentOf(101, 110)).toBe("pending");
    expect(range.contentOf(reused + 1, reused + 2)).toBe("empty");
  });
});
