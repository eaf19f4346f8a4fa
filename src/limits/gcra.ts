/**
 * The rate limit as one number: the generic cell rate algorithm, a token bucket that needs no
 * timer. The state is the time at which the bucket is full again. A bucket of n lets n requests
 * through at once and one more for each interval; a refused request costs nothing. Intervals are
 * whole nanoseconds, rounded up, so sums stay exact and no plan ever gets more than it says.
 *
 * Hot path: numbers in, one number out.
 */

import { NS_PER_S } from "../core/clock.ts";

/** What is let through. */
export interface Rate {
  readonly ratePerSecond: number;
  /** At once. */
  readonly burst: number;
}

/** Nanoseconds that one request costs at this rate. */
export function intervalNs(ratePerSecond: number): number {
  return Math.ceil(NS_PER_S / ratePerSecond);
}

/**
 * How long to wait until one more request is let through, in nanoseconds; 0 is now. `fullNs` is
 * the state, 0 for a bucket that was never used.
 */
export function waitNs(fullNs: number, nowNs: number, interval: number, burst: number): number {
  return Math.max(0, fullNs - nowNs - (burst - 1) * interval);
}

/** The state after a request was let through at `nowNs`. */
export function charged(fullNs: number, nowNs: number, interval: number): number {
  return Math.max(fullNs, nowNs) + interval;
}
