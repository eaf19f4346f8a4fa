/**
 * From a digest to the line of its key: open addressing with linear probing, in 256 parts, each of
 * which grows by itself and at a time of its own, so that no key that is added waits until all the
 * others are placed anew.
 *
 * An entry has ten bits of the digest beside the line's number, so almost every line that is read
 * is the one that was looked for. A removal moves the entries that follow back; there are no marks
 * of what was. A digest is random already and serves as its own hash.
 *
 * Hot path: `find` reads one part, as a rule one of its cache lines, and one line of the keys.
 */

import type { KeyEntries } from "./entry-layout.ts";

/** Lines that an index can tell apart. */
export const INDEX_ENTRIES_MAX = 2 ** 22 - 1;
export const NO_ENTRY = -1;

const PARTS = 256;
const PART_MIN = 16;
/** An entry: 22 bits of the line's number plus 1, below ten of the digest; 0: free. */
const ENTRY_MASK = INDEX_ENTRIES_MAX;
const MARK_MASK = ~ENTRY_MASK;

/** Of the digest: its first word says where in a part and the mark, its second which part. */
const PLACE_WORD = 0;
const PART_WORD = 1;

export class KeyIndex {
  readonly #keyEntries: KeyEntries;
  /** The size of each is a power of two. */
  readonly #parts: Int32Array[];
  readonly #counts = new Uint32Array(PARTS);

  constructor(keyEntries: KeyEntries) {
    this.#keyEntries = keyEntries;
    this.#parts = Array.from({ length: PARTS }, () => NO_ENTRIES);
  }

  /** The line with the digest that begins at `at` of the bytes, `NO_ENTRY` for none. */
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

  /** Adds a line whose digest is not in yet. */
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

  /** What is in line `from` stands in line `to` from now on. */
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

  /** Frees an entry; those behind it that stood there for want of a better place move back. */
  #free(entries: Int32Array, freed: number): void {
    const mask = entries.length - 1;
    let hole = freed;
    for (let next = (hole + 1) & mask; entries[next] !== 0; next = (next + 1) & mask) {
      const keyEntry = ((entries[next] ?? 0) & ENTRY_MASK) - 1;
      const home = this.#keyEntries.wordOf(keyEntry, PLACE_WORD) & mask;
      // Only what may stand at the hole, seen from its home, can fill it.
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      entries[hole] = entries[next] ?? 0;
      hole = next;
    }
    entries[hole] = 0;
  }
}

/**
 * Entries that a part of this size takes: three eighths in the first part, up to six in the last.
 * Digests fill all parts alike, so this spreads their growing evenly over the time in which the
 * number of keys doubles. None is ever full: a search ends at a free entry.
 */
function countMax(part: number, size: number): number {
  return (size * 3 * (PARTS + part)) / (PARTS * 8);
}

/** Where nothing was ever added: one free entry. */
const NO_ENTRIES = new Int32Array(1);
