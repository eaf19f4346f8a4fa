/**
 * Maps a digest to the entry of its key: open addressing with linear probing, in 256 parts, each of
 * which grows separately and at a different time, so that no insertion waits for all others to be
 * rehashed.
 *
 * An index word holds ten bits of the digest next to the entry number, so almost every entry read
 * is the right one. A removal moves the following words back; there are no tombstones. A digest is
 * already random and serves as its own hash.
 *
 * Hot path: `find` reads one part, usually one of its cache lines, and one key entry.
 */

import type { KeyEntries } from "./entry-layout.ts";

/** Maximum entry number that an index word can hold. */
export const INDEX_ENTRIES_MAX = 2 ** 22 - 1;
export const NO_ENTRY = -1;

const PARTS = 256;
const PART_MIN = 16;
/** An index word: 22 bits of the entry number plus 1, below ten bits of the digest; 0: free. */
const ENTRY_MASK = INDEX_ENTRIES_MAX;
const MARK_MASK = ~ENTRY_MASK;

/** Digest words: the first gives the position in a part and the tag, the second the part. */
const PLACE_WORD = 0;
const PART_WORD = 1;

export class KeyIndex {
  readonly #keyEntries: KeyEntries;
  /** Each size is a power of two. */
  readonly #parts: Int32Array[];
  readonly #counts = new Uint32Array(PARTS);

  constructor(keyEntries: KeyEntries) {
    this.#keyEntries = keyEntries;
    this.#parts = Array.from({ length: PARTS }, () => NO_ENTRIES);
  }

  /** The entry with the digest at `at` of the bytes; `NO_ENTRY` if missing. */
  find(bytes: Buffer, at: number): number {
    const entries = this.#parts[bytes.readInt32LE(at + PART_WORD * 4) & (PARTS - 1)] ?? NO_ENTRIES;
    const first = bytes.readInt32LE(at + PLACE_WORD * 4);
    const mask = entries.length - 1;
    for (let place = first & mask; ; place = (place + 1) & mask) {
      const entry = entries[place] ?? 0;
      if (entry === 0) return NO_ENTRY;
      if (((entry ^ first) & MARK_MASK) !== 0) continue;
      const keyEntry = (entry & ENTRY_MASK) - 1;
      if (this.#keyEntries.matches(keyEntry, bytes, at)) return keyEntry;
    }
  }

  /** Adds an entry whose digest is not in the index yet. */
  add(keyEntry: number): void {
    const part = this.#partOf(keyEntry);
    const count = (this.#counts[part] ?? 0) + 1;
    this.#counts[part] = count;
    const entries = this.#parts[part] ?? NO_ENTRIES;
    if (count > countMax(part, entries.length)) {
      this.#parts[part] = this.#grown(entries, part, count);
    }
    this.#place(this.#parts[part] ?? NO_ENTRIES, keyEntry);
  }

  remove(keyEntry: number): void {
    const part = this.#partOf(keyEntry);
    const entries = this.#parts[part] ?? NO_ENTRIES;
    this.#counts[part] = (this.#counts[part] ?? 0) - 1;
    this.#free(entries, this.#placeOf(entries, keyEntry));
  }

  /** Records that entry `from` has moved to `to`. */
  move(from: number, to: number): void {
    const entries = this.#parts[this.#partOf(from)] ?? NO_ENTRIES;
    const place = this.#placeOf(entries, from);
    entries[place] = ((entries[place] ?? 0) & MARK_MASK) | (to + 1);
  }

  #partOf(keyEntry: number): number {
    return this.#keyEntries.wordOf(keyEntry, PART_WORD) & (PARTS - 1);
  }

  #placeOf(entries: Int32Array, keyEntry: number): number {
    const mask = entries.length - 1;
    let place = this.#keyEntries.wordOf(keyEntry, PLACE_WORD) & mask;
    while (((entries[place] ?? 0) & ENTRY_MASK) !== keyEntry + 1) place = (place + 1) & mask;
    return place;
  }

  #place(entries: Int32Array, keyEntry: number): void {
    const mask = entries.length - 1;
    const first = this.#keyEntries.wordOf(keyEntry, PLACE_WORD);
    let place = first & mask;
    while (entries[place] !== 0) place = (place + 1) & mask;
    entries[place] = (first & MARK_MASK) | (keyEntry + 1);
  }

  #grown(entries: Int32Array, part: number, count: number): Int32Array {
    let size = PART_MIN;
    while (count > countMax(part, size)) size *= 2;
    const larger = new Int32Array(size);
    for (const entry of entries) {
      if (entry !== 0) this.#place(larger, (entry & ENTRY_MASK) - 1);
    }
    return larger;
  }

  /** Frees a word and moves back the displaced words after it. */
  #free(entries: Int32Array, freed: number): void {
    const mask = entries.length - 1;
    let hole = freed;
    for (let next = (hole + 1) & mask; entries[next] !== 0; next = (next + 1) & mask) {
      const keyEntry = ((entries[next] ?? 0) & ENTRY_MASK) - 1;
      const home = this.#keyEntries.wordOf(keyEntry, PLACE_WORD) & mask;
      // A word can fill the hole only if the hole lies between its home position and its current
      // one.
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      entries[hole] = entries[next] ?? 0;
      hole = next;
    }
    entries[hole] = 0;
  }
}

/**
 * Maximum words in a part of this size: three eighths in the first part, rising to six eighths in
 * the last. Digests fill all parts evenly, so this spreads their growth over the time in which the
 * number of keys doubles. No part is ever full: a search ends at a free word.
 */
function countMax(part: number, size: number): number {
  return (size * 3 * (PARTS + part)) / (PARTS * 8);
}

/** An empty part: one free word. */
const NO_ENTRIES = new Int32Array(1);
