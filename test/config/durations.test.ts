import { describe, expect, it } from "vitest";
import { formatDuration, parseDuration } from "../../src/config/durations.ts";
import { fc } from "../support/properties.ts";

describe("parseDuration", () => {
  it.each([
    ["250ms", 250],
    ["30s", 30_000],
    ["1.5s", 1_500],
    ["5m", 300_000],
    ["1h", 3_600_000],
    ["0s", 0],
    ["0.5ms", 0.5],
  ])("reads %s", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(["", "30", "s", "-1s", "1 s", "1S", "1d", "1e3s", "1.s", ".5s", "1s1ms", "Infinitys"])(
    "rejects %j",
    (text) => {
      expect(parseDuration(text)).toBeNull();
    },
  );
});

describe("formatDuration", () => {
  it("picks the largest unit that divides the value", () => {
    const shown = [0, 1, 999, 1_000, 1_500, 60_000, 90_000, 3_600_000].map(formatDuration);
    expect(shown).toEqual(["0s", "1ms", "999ms", "1s", "1500ms", "1m", "90s", "1h"]);
  });

  it("is parsed back to the same value", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100_000_000 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });
});
