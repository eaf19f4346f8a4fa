// Hot path: `record` is a short loop over the bounds, and allocates nothing.
/**
 * A histogram of durations with fixed bounds, as plain numbers that a scrape reads.
 *
 * Each stage owns its histogram and records into it on the thread that measures; nothing is shared
 * or locked. A value counts in the first bucket whose bound it does not exceed, like Prometheus'
 * `le`; the last bucket takes larger values. The counts are per bucket, not the running sums that
 * Prometheus receives.
 */

import { NS_PER_S, NS_PER_US } from "../core/clock.ts";
import { withFastProperties } from "./fast-object.ts";

export interface Histogram {
  /** Records one duration in nanoseconds; a negative one (a coarse clock) counts as 0. */
  record(ns: number): void;
  /** The upper bound of each bucket but the last, in nanoseconds, ascending. */
  readonly boundsNs: readonly number[];
  /** The count of each bucket: one more than there are bounds. */
  readonly counts: Readonly<Float64Array>;
  /** The sum of all durations, in nanoseconds. */
  readonly sumNs: number;
  /** The number of recorded durations. */
  readonly count: number;
}

/** 1, 2 and 5 of each decade, from 10 us up to 10 s. */
export const LATENCY_BOUNDS_NS: readonly number[] = latencyBounds();

function latencyBounds(): number[] {
  const bounds: number[] = [];
  for (let decade = 10 * NS_PER_US; decade < 10 * NS_PER_S; decade *= 10) {
    bounds.push(decade, 2 * decade, 5 * decade);
  }
  return [...bounds, 10 * NS_PER_S];
}

/** An empty histogram. Throws a RangeError unless the bounds ascend. */
export function createHistogram(boundsNs: readonly number[] = LATENCY_BOUNDS_NS): Histogram {
  for (let i = 1; i < boundsNs.length; i += 1) {
    if (!((boundsNs[i] ?? 0) > (boundsNs[i - 1] ?? 0))) {
      throw new RangeError(`the bounds of a histogram rise, but not at ${boundsNs[i]}`);
    }
  }
  const bounds = Float64Array.from(boundsNs);
  const counts = new Float64Array(bounds.length + 1);
  let sumNs = 0;
  let count = 0;

  return withFastProperties({
    record(ns) {
      const value = Math.max(ns, 0);
      let bucket = 0;
      while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket += 1;
      counts[bucket] = (counts[bucket] ?? 0) + 1;
      sumNs += value;
      count += 1;
    },
    boundsNs: [...boundsNs],
    counts,
    get sumNs() {
      return sumNs;
    },
    get count() {
      return count;
    },
  });
}
