/**
 * Finds rows by the hash of their key: chains of rows in two arrays of integers.
 *
 * Several rows may share a hash, so who looks walks the chain and compares the keys themselves.
 * Adding and removing allocate nothing. The hash is the caller's, and where outsiders choose the
 * keys it has to be one that they cannot steer.
 *
 * Hot path: every function here.
 */

import { NONE } from "./byte-store.ts";

export class RowIndex {
  readonly #heads: Int32Array;
  readonly #next: Int32Array;
  readonly #mask: number;

  constructor(rows: number) {
    const buckets = 2 ** Math.ceil(Math.log2(Math.max(rows, 1)));
    this.#heads = new Int32Array(buckets).fill(NONE);
    this.#next = new Int32Array(rows).fill(NONE);
    this.#mask = buckets - 1;
  }

  /** The newest row whose key may have this hash, or NONE. */
  first(hash: number): number {
    return this.#heads[hash & this.#mask] ?? NONE;
  }

  /** The one behind it. */
  after(row: number): number {
    return this.#next[row] ?? NONE;
  }

  add(hash: number, row: number): void {
    const bucket = hash & this.#mask;
    this.#next[row] = this.#heads[bucket] ?? NONE;
    this.#heads[bucket] = row;
  }

  remove(hash: number, row: number): void {
    const bucket = hash & this.#mask;
    const after = this.#next[row] ?? NONE;
    let at = this.#heads[bucket] ?? NONE;
    if (at === row) {
      this.#heads[bucket] = after;
      return;
    }
    while (at !== NONE) {
      const next = this.#next[at] ?? NONE;
      if (next === row) {
        this.#next[at] = after;
        return;
      }
      at = next;
    }
  }
}
