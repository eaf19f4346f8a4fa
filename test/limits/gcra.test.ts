import { describe, expect, it } from "vitest";
import { charged, intervalNs, waitNs } from "../../src/limits/gcra.ts";
import { fc } from "../support/properties.ts";

const SECOND = 1_000_000_000;

/** The times at which a request is allowed. */
function letThrough(times: readonly number[], rate: number, burst: number): number[] {
  const interval = intervalNs(rate);
  let state = 0;
  const through: number[] = [];
  for (const now of times) {
    if (waitNs(state, now, interval, burst) > 0) continue;
    state = charged(state, now, interval);
    through.push(now);
  }
  return through;
}

describe("the limit", () => {
  it("admits exactly the burst immediately, for every rate and burst", () => {
    for (const rate of [0.001, 0.3, 1, 3, 7, 50, 999, 1_000_000]) {
      for (const burst of [1, 2, 3, 100, 9_999]) {
        const start = 1_790_000_000_123_456;
        const times = Array.from({ length: burst + 5 }, () => start);
        expect(letThrough(times, rate, burst)).toHaveLength(burst);
      }
    }
  });

  it("lets one more through after one interval, and not before", () => {
    const interval = intervalNs(50);
    const state = charged(0, SECOND, interval);
    expect(waitNs(state, SECOND + interval - 1, interval, 1)).toBe(1);
    expect(waitNs(state, SECOND + interval, interval, 1)).toBe(0);
  });

  it("reports the wait after which the next request is admitted", () => {
    const interval = intervalNs(3);
    let state = 0;
    for (let i = 0; i < 5; i += 1) state = charged(state, SECOND, interval);
    const wait = waitNs(state, SECOND, interval, 5);
    expect(wait).toBeGreaterThan(0);
    expect(waitNs(state, SECOND + wait, interval, 5)).toBe(0);
    expect(waitNs(state, SECOND + wait - 1, interval, 5)).toBeGreaterThan(0);
  });

  it("never lets more than burst + rate × time through in any window", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 200_000_000 }), { maxLength: 300 }),
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 20 }),
        (gaps, rate, burst) => {
          let now = SECOND;
          const times = gaps.map((gap) => {
            now += gap;
            return now;
          });
          const through = letThrough(times, rate, burst);
          for (let i = 0; i < through.length; i += 1) {
            for (let j = i; j < through.length; j += 1) {
              const window = ((through[j] ?? 0) - (through[i] ?? 0)) / SECOND;
              expect(j - i + 1).toBeLessThanOrEqual(Math.floor(burst + rate * window));
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
