import { describe, expect, it } from "vitest";
import { createBackOff } from "../../src/cluster/back-off.ts";
import { fc } from "../support/properties.ts";

describe("the back-off", () => {
  it("doubles up to its bound and begins anew after a success", () => {
    const backOff = createBackOff({ firstMs: 500, maxMs: 3000, random: () => 1 });
    expect([1, 2, 3, 4, 5].map(() => backOff.next())).toEqual([500, 1000, 2000, 3000, 3000]);
    backOff.reset();
    expect(backOff.next()).toBe(500);
  });

  it("keeps at least half of each wait, whatever the dice say", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 0.999, noNaN: true })), (rng) => {
        let index = 0;
        const backOff = createBackOff({
          firstMs: 100,
          maxMs: 1600,
          random: () => rng[index++] ?? 0,
        });
        rng.forEach((_, step) => {
          const full = Math.min(1600, 100 * 2 ** step);
          const waitMs = backOff.next();
          expect(waitMs).toBeGreaterThanOrEqual(full / 2);
          expect(waitMs).toBeLessThanOrEqual(full);
        });
      }),
    );
  });
});
