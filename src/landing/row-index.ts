/**
 * Finds rows by the hash of their key: linked rows in two integer arrays.
 *
 * Several rows may share a hash, so the caller walks the list and compares the keys. Adding and
 * removing allocate nothing. The caller supplies the hash; if outsiders choose the keys, they must
 * not be able to control it.
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
