import { describe, expect, it } from "vitest";
import { createBackOff } from "../../src/cluster/back-off.ts";
import { fc } from "../support/properties.ts";

describe("back-off", () => {
  it("doubles up to its maximum and starts over after a reset", () => {
    const backOff = createBackOff({ firstMs: 500, maxMs: 3000, random: () => 1 });
    expect([1, 2, 3, 4, 5].map(() => backOff.next())).toEqual([500, 1000, 2000, 3000, 3000]);
    backOff.reset();
    expect(backOff.next()).toBe(500);
  });

  it("waits at least half of the doubled time for any random number", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 0.999, noNaN: true })), (randoms) => {
        let index = 0;
        const backOff = createBackOff({
          firstMs: 100,
          maxMs: 1600,
          random: () => randoms[index++] ?? 0,
        });
        randoms.forEach((_, step) => {
          const doubledMs = Math.min(1600, 100 * 2 ** step);
          const waitMs = backOff.next();
          expect(waitMs).toBeGreaterThanOrEqual(doubledMs / 2);
          expect(waitMs).toBeLessThanOrEqual(doubledMs);
        });
      }),
    );
  });
});
