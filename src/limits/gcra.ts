/**
 * The rate limit as one number: the generic cell rate algorithm (GCRA), a token bucket without a
 * timer. The state is the time at which the bucket is full again. A bucket of n allows n requests
 * at the same time and one more per interval; a rejected request costs nothing. Intervals are whole
 * nanoseconds, rounded up, so sums stay exact and no plan ever gets more than its rate.
 *
 * Hot path: numbers in, one number out.
 */

import { NS_PER_S } from "../core/clock.ts";

/** A rate and its burst. */
export interface Rate {
  readonly ratePerSecond: number;
  /** Requests allowed at the same time. */
  readonly burst: number;
}

/** Nanoseconds that one request costs at this rate. */
export function intervalNs(ratePerSecond: number): number {
  return Math.ceil(NS_PER_S / ratePerSecond);
}

/**
 * How long until one more request is allowed, in nanoseconds; 0 is now. `fullNs` is the state, 0
 * for an unused bucket.
 */
export function waitNs(fullNs: number, nowNs: number, interval: number, burst: number): number {
  return Math.max(0, fullNs - nowNs - (burst - 1) * interval);
}

/**
 * The state of a bucket whose limit may have been raised. What a lower limit left would block
 * requests for as long as its burst takes at its rate, so a state above the most that this limit
 * can leave becomes that.
 */
export function boundedNs(fullNs: number, nowNs: number, interval: number, burst: number): number {
  return Math.min(fullNs, nowNs + burst * interval + THREADS_APART_NS);
}

/** By how much the times of threads that charge one limit may differ. */
const THREADS_APART_NS = 1_000_000_000;

/** The state after a request was charged at `nowNs`. */
export function charged(fullNs: number, nowNs: number, interval: number): number {
  return Math.max(fullNs, nowNs) + interval;
}
