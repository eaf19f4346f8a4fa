/**
 * How long to wait before the next try: doubling up to a bound, half of it at random, so that many
 * edges that lost one node do not all come back in the same moment.
 */

export interface BackOffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** A number in [0, 1); `Math.random` but in tests. */
  readonly random: () => number;
}

export interface BackOff {
  /** The next wait in milliseconds; each is up to twice as long as the one before. */
  next(): number;
  /** Begins anew, after a success. */
  reset(): void;
}

export function createBackOff({ firstMs, maxMs, random }: BackOffOptions): BackOff {
  let baseMs = firstMs;
  return {
    next() {
      const waitMs = baseMs * (0.5 + 0.5 * random());
      baseMs = Math.min(maxMs, baseMs * 2);
      return waitMs;
    },
    reset() {
      baseMs = firstMs;
    },
  };
}
