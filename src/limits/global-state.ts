/**
 * Limits that hold over all edges, in memory that threads share. Each is a limit's cell, which
 * every thread charges by itself, and a count of what was let through, which the main thread tells
 * the other edges. One number more is the same for all: by how many edges rate and burst are
 * divided now, which is 1 while edges tell each other.
 *
 * The surprise: a request is counted before it is charged, and no more where it is refused then. So
 * who reads a cell and then its count misses nothing that is in the cell, and can set it anew
 * without a lock.
 *
 * Hot path: numbers and a plan in, one number out.
 */

import { PASSES_MAX } from "./bounds.ts";
import { intervalNs, type Rate } from "./gcra.ts";
import { HELD_CELLS_MAX, LimitCells, sharedWords } from "./shared-state.ts";

/** One for the account of each pass. */
export const SHARED_CELLS_MAX = PASSES_MAX;

/** Where the number of edges stands; before it, the counts by the number of their cell. */
const SHARERS = SHARED_CELLS_MAX;

/** One thread's view of them. */
export class SharedCells {
  readonly #cells: LimitCells;
  readonly #words: Int32Array<SharedArrayBuffer>;

  /** `memory` is from `passMemory`. */
  constructor(memory: SharedArrayBuffer) {
    this.#cells = new LimitCells(memory);
    this.#words = sharedWords(memory);
  }

  /** Lets one request through and counts it: 0, or the nanoseconds to wait, and nothing is done. */
  tryCharge(cell: number, nowNs: number, { ratePerSecond, burst }: Rate): number {
    const share = this.#sharers();
    const interval = intervalNs(ratePerSecond) * share;
    const atOnce = shareOf(burst, share);
    const place = HELD_CELLS_MAX + cell;
    const wait = this.#cells.waitNs(place, nowNs, interval, atOnce);
    if (wait > 0) return wait;
    Atomics.add(this.#words, cell, 1);
    const lateWait = this.#cells.tryCharge(place, nowNs, interval, atOnce);
    if (lateWait > 0) Atomics.sub(this.#words, cell, 1);
    return lateWait;
  }

  /** How long the next request would have to wait. Changes nothing. */
  waitNs(cell: number, nowNs: number, { ratePerSecond, burst }: Rate): number {
    const share = this.#sharers();
    const interval = intervalNs(ratePerSecond) * share;
    return this.#cells.waitNs(HELD_CELLS_MAX + cell, nowNs, interval, shareOf(burst, share));
  }

  /** When the bucket is full again. */
  fullNsOf(cell: number): number {
    return this.#cells.fullNsOf(HELD_CELLS_MAX + cell);
  }

  /** Requests let through so far, by whomever; after 2^31 - 1 comes -2^31. */
  countOf(cell: number): number {
    return Atomics.load(this.#words, cell);
  }

  /** For a cell that no other thread knows as yet. Its count goes on from where it is. */
  set(cell: number, fullNs: number): void {
    this.#cells.set(HELD_CELLS_MAX + cell, fullNs);
  }

  /** Sets it where it is still what it was; whether that was so. */
  replace(cell: number, wasNs: number, fullNs: number): boolean {
    return this.#cells.replace(HELD_CELLS_MAX + cell, wasNs, fullNs);
  }

  /** By how many edges rate and burst are divided from now on; said before the first charge. */
  setSharers(count: number): void {
    Atomics.store(this.#words, SHARERS, count);
  }

  #sharers(): number {
    return Atomics.load(this.#words, SHARERS);
  }
}

function shareOf(burst: number, share: number): number {
  return Math.max(1, Math.floor(burst / share));
}
