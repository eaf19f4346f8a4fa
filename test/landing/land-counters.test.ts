import { describe, expect, it } from "vitest";
import { END_REASONS } from "../../src/core/errors.ts";
import { LandCounters } from "../../src/landing/land-counters.ts";

describe("the counters of landing", () => {
  it("begin at zero, with one for each reason, and each caller has its own", () => {
    const { reasons, ...counters } = new LandCounters();
    expect(Object.values(counters).every((count) => count === 0)).toBe(true);
    expect(reasons).toEqual(Object.fromEntries(Object.keys(END_REASONS).map((it) => [it, 0])));
    reasons.table_full += 1;
    expect(new LandCounters().reasons.table_full).toBe(0);
  });
});
