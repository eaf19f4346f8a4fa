import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { Pace } from "../../src/send/pace.ts";
import type { Ending } from "../../src/send/transport.ts";

const options = { reconnectMs: 8_000, reconnectMsMax: 64_000, random: () => 0 };

/** When the next attempt is allowed, in ms, after an attempt at 0 that ended at `endMs`. */
function nextMs(ending: Ending, endMs: number, liveMs = 0, pace = new Pace(options)): number {
  pace.attempted(0);
  pace.ended(ending, liveMs * NS_PER_MS, endMs * NS_PER_MS);
  return pace.nextAttemptNs / NS_PER_MS;
}

describe("the pause before the next attempt", () => {
  it.each([
    ["silence", 0, 3_000, 8_000],
    ["local", 0, 3_000, 8_000],
    ["app", 0, 3_000, 8_000],
    ["app", 5, 3_000, 8_000],
    ["app", 1, 3_000, 8_000],
    ["app", 1, 60_000, 61_000],
    ["app", 2, 3_000, 11_000],
    ["app", 4, 3_000, 11_000],
    ["app", 77, 3_000, 11_000],
    ["transport", 2, 3_000, 11_000],
  ] as const)("after %s %i at %i ms ends at %i ms", (kind, code, endMs, expected) => {
    expect(nextMs({ kind, code }, endMs)).toBe(expected);
  });

  it("doubles with each failure in a row up to its bound", () => {
    const pace = new Pace(options);
    const pauses: number[] = [];
    for (let count = 0; count < 6; count += 1) {
      const startNs = pace.nextAttemptNs;
      pace.attempted(startNs);
      pace.ended({ kind: "silence", code: 0 }, 0, startNs + 3_000 * NS_PER_MS);
      pauses.push((pace.nextAttemptNs - startNs) / NS_PER_MS);
    }
    expect(pauses).toEqual([8_000, 16_000, 32_000, 64_000, 64_000, 64_000]);
  });

  it("starts over after a connection that lived", () => {
    const pace = new Pace(options);
    for (let count = 0; count < 3; count += 1) nextMs({ kind: "app", code: 2 }, 0, 0, pace);
    expect(nextMs({ kind: "app", code: 2 }, 20_000, 1, pace)).toBe(28_000);
  });

  it("is lengthened by up to a quarter", () => {
    const pace = new Pace({ ...options, random: () => 0.999 });
    const ms = nextMs({ kind: "app", code: 2 }, 0, 0, pace);
    expect(ms).toBeGreaterThan(9_900);
    expect(ms).toBeLessThan(10_000);
  });
});
