/**
 * What a round of resends has to send, by rank: what pays more first, and among equals what came
 * first. One list for each rank, in arrays made once.
 */

import { NONE } from "./byte-store.ts";
import { RANKS } from "./in-flight-table.ts";

export class DueByRank {
  /** Those that are not taken yet. */
  length = 0;
  readonly #rows: Int32Array;
  readonly #ids: Float64Array;
  /** The place that is next in its rank, by place. */
  readonly #next: Int32Array;
  readonly #first = new Int32Array(RANKS).fill(NONE);
  readonly #last = new Int32Array(RANKS).fill(NONE);
  #used = 0;
  /** No rank above it has any left. */
  #rank = 0;

  constructor(capacity: number) {
    this.#rows = new Int32Array(capacity);
    this.#ids = new Float64Array(capacity);
    this.#next = new Int32Array(capacity);
  }

  clear(): void {
    this.#first.fill(NONE);
    this.#used = 0;
    this.#rank = 0;
    this.length = 0;
  }

  /** Adds a row and the packet that it has now; past the capacity nothing. */
  add(row: number, packetId: number, rank: number): void {
    const place = this.#used;
    if (place === this.#rows.length) return;
    this.#used += 1;
    this.length += 1;
    this.#rows[place] = row;
    this.#ids[place] = packetId;
    this.#next[place] = NONE;
    if (this.#first[rank] === NONE) this.#first[rank] = place;
    else this.#next[this.#last[rank] ?? NONE] = place;
    this.#last[rank] = place;
    this.#rank = Math.max(this.#rank, rank);
  }

  /** Takes the place of the next one; NONE when all are taken. */
  take(): number {
    if (this.length === 0) return NONE;
    while (this.#first[this.#rank] === NONE) this.#rank -= 1;
    const place = this.#first[this.#rank] ?? NONE;
    this.#first[this.#rank] = this.#next[place] ?? NONE;
    this.length -= 1;
    return place;
  }

  /** The row at a place that was taken; holds until `clear`. */
  row(place: number): number {
    return this.#rows[place] ?? NONE;
  }

  packetId(place: number): number {
    return this.#ids[place] ?? NONE;
  }
}
