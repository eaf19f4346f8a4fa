/**
 * Due resends of a round, by priority: higher first, then older first. One list per priority
 * bucket, in preallocated arrays.
 */

import { NONE } from "./byte-store.ts";

/** Priority buckets: four for each doubling. */
const BUCKETS_PER_DOUBLING = 4;
export const PRIORITY_BUCKETS = 256;

export class ResendPriorityBuckets {
  /** Entries not taken yet. */
  length = 0;
  readonly #rows: Int32Array;
  readonly #ids: Float64Array;
  /** The next entry of the same bucket, by entry. */
  readonly #next: Int32Array;
  readonly #first = new Int32Array(PRIORITY_BUCKETS).fill(NONE);
  readonly #last = new Int32Array(PRIORITY_BUCKETS).fill(NONE);
  #used = 0;
  /** All buckets above it are empty. */
  #priorityBucket = 0;

  constructor(capacity: number) {
    this.#rows = new Int32Array(capacity);
    this.#ids = new Float64Array(capacity);
    this.#next = new Int32Array(capacity);
  }

  clear(): void {
    this.#first.fill(NONE);
    this.#used = 0;
    this.#priorityBucket = 0;
    this.length = 0;
  }

  /** Adds a row and the packet that it holds; does nothing beyond the capacity. */
  add(row: number, packetId: number, priorityBucket: number): void {
    const place = this.#used;
    if (place === this.#rows.length) return;
    this.#used += 1;
    this.length += 1;
    this.#rows[place] = row;
    this.#ids[place] = packetId;
    this.#next[place] = NONE;
    if (this.#first[priorityBucket] === NONE) this.#first[priorityBucket] = place;
    else this.#next[this.#last[priorityBucket] ?? NONE] = place;
    this.#last[priorityBucket] = place;
    this.#priorityBucket = Math.max(this.#priorityBucket, priorityBucket);
  }

  /** Takes the next entry; NONE when none is left. */
  pop(): number {
    if (this.length === 0) return NONE;
    while (this.#first[this.#priorityBucket] === NONE) this.#priorityBucket -= 1;
    const place = this.#first[this.#priorityBucket] ?? NONE;
    this.#first[this.#priorityBucket] = this.#next[place] ?? NONE;
    this.length -= 1;
    return place;
  }

  /** The row of a taken entry; valid until `clear`. */
  row(place: number): number {
    return this.#rows[place] ?? NONE;
  }

  packetId(place: number): number {
    return this.#ids[place] ?? NONE;
  }
}

/** The bucket of a priority in lamports; higher is sent first. */
export function priorityBucketOf(lamports: number): number {
  return Math.min(PRIORITY_BUCKETS - 1, Math.floor(Math.log2(lamports + 1) * BUCKETS_PER_DOUBLING));
}
