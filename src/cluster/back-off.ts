/**
 * Retry delay: doubles up to a maximum, half of it random, so that edges which lost the same node
 * do not reconnect simultaneously.
 */

export interface BackOffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** Returns a number in [0, 1); `Math.random` outside tests. */
  readonly random: () => number;
}

export interface BackOff {
  /** Returns the next wait in milliseconds; each is up to twice the previous one. */
  next(): number;
  /** Restarts from `firstMs` after a success. */
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
