import { describe, expect, it } from "vitest";
import { type SoakSample, trendOf } from "../../../bench/compare/soak.ts";

/** An hour of samples whose memory is `rss(hour, index)`. */
function hourOf(rss: (hour: number, index: number) => number): SoakSample[] {
  return Array.from({ length: 120 }, (_, index) => ({
    ...{ seconds: index * 30, rss_mb: rss(index / 120, index) },
    ...{ open_files: 40, loop_delay_ms: 1 },
  }));
}
const memoryTrend = (samples: readonly SoakSample[]) => trendOf(samples, ({ rss_mb }) => rss_mb);

describe("the trend of a soak", () => {
  it("is the slope of an hour, whatever the first sixth does", () => {
    const { perHour, error } = memoryTrend(
      hourOf((hour, index) => (index < 20 ? 0 : 100 + 12 * hour)),
    );
    expect(perHour).toBeCloseTo(12, 6);
    expect(error).toBeCloseTo(0, 6);
  });

  it("has an error that covers what only varies", () => {
    const { mean, perHour, error } = memoryTrend(hourOf((_, index) => 100 + ((index * 7) % 11)));
    expect(mean).toBeCloseTo(105, 0);
    expect(Math.abs(perHour)).toBeLessThan(2 * error);
    expect(error).toBeLessThan(3);
  });
});
