/**
 * Pseudo-random numbers that are the same in each run.
 */

export interface Rng {
  /** An integer from 0 to below `bound`. */
  below(bound: number): number;
  chance(one: number): boolean;
  pick<T>(from: readonly T[]): T;
  bytes(size: number): Uint8Array;
}

/** Mulberry32 (public domain). */
export function createRng(seed: number): Rng {
  let state = seed >>> 0;

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  function below(bound: number): number {
    return next() % bound;
  }

  return {
    below,
    chance: (one) => below(one) === 0,
    pick(from) {
      const found = from[below(from.length)];
      if (found === undefined) throw new RangeError("nothing to pick from");
      return found;
    },
    bytes: (size) => Uint8Array.from({ length: size }, () => below(256)),
  };
}
