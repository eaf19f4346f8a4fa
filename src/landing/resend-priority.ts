/**
 * Due resends of a round, by priority: higher first, then older first. One list per priority
 * bucket, in preallocated arrays.
 */

import { NONE } from "./byte-store.ts";

/** Priority buckets: four for each doubling. */
const BUCKETS_PER_DOUBLING = 4;
export const PRIORITY_BUCKETS = 256;

/** What becomes of a visited entry. */
export type Visited = "taken" | "kept" | "last";

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
  #top = 0;

  constructor(capacity: number) {
    this.#rows = new Int32Array(capacity);
    this.#ids = new Float64Array(capacity);
    this.#next = new Int32Array(capacity);
  }

  clear(): void {
    this.#first.fill(NONE);
    this.#used = 0;
    this.#top = 0;
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
    this.#top = Math.max(this.#top, priorityBucket);
  }

  /**
   * Visits the entries by priority, but for the first `skip`. `act` says whether the entry is taken
   * out, or stays for the next visit, or stays and ends this one. It must not add any.
   */
  visit(act: (row: number, packetId: number) => Visited, skip = 0): void {
    let skipped = 0;
    for (; this.#first[this.#top] === NONE && this.#top > 0; this.#top -= 1);
    for (let bucket = this.#top; bucket >= 0; bucket -= 1) {
      let kept = NONE;
      let place = this.#first[bucket] ?? NONE;
      while (place !== NONE) {
        const isSkipped = skipped < skip;
        if (isSkipped) skipped += 1;
        const visited = isSkipped
          ? "kept"
          : act(this.#rows[place] ?? NONE, this.#ids[place] ?? NONE);
        if (visited === "last") return;
        const next = this.#next[place] ?? NONE;
        if (visited === "kept") kept = place;
        else this.#remove(bucket, kept, next);
        place = next;
      }
    }
  }

  /** Removes the entry between two of a bucket. */
  #remove(bucket: number, before: number, after: number): void {
    if (before === NONE) this.#first[bucket] = after;
    else this.#next[before] = after;
    if (after === NONE) this.#last[bucket] = before;
    this.length -= 1;
  }
}

/** The bucket of a priority in lamports; higher is sent first. */
export function priorityBucketOf(lamports: number): number {
  return Math.min(PRIORITY_BUCKETS - 1, Math.floor(Math.log2(lamports + 1) * BUCKETS_PER_DOUBLING));
}
