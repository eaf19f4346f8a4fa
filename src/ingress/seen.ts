/**
 * Which transactions were accepted a moment ago, so that a repetition is answered as the first one
 * was and costs neither a verification nor a stream.
 *
 * Asked before a transaction is decoded, told only after it was accepted: so nobody can put an
 * entry in with somebody else's signature, and an entry answers only for exactly the same bytes.
 * The bytes lie in one ring, oldest overwritten first, and an index of numbers leads to them;
 * nothing is allocated after the start, so that nothing of a transaction outlives it in the
 * garbage collector's memory. The ring begins small and grows with what has to be remembered: what
 * of its memory was never written to is not resident.
 *
 *     arena  ├──── older ────┤ next ▶ ├──── older still ────┤
 *     index  hash of the signature ─▶ newest entry of its bucket ─▶ older ─▶ NONE
 *
 * Hot path: one hash of twelve bytes, one comparison of memory.
 */

import { randomInt } from "node:crypto";
import { NS_PER_MS } from "../core/clock.ts";
import { SEEN_BYTES_MAX, SEEN_KEEP_MS, SEEN_TRANSACTIONS_MAX } from "../core/limits.ts";

export interface SeenOptions {
  readonly entriesMax?: number;
  readonly bytesMax?: number;
  readonly keepMs?: number;
}

export interface SeenCounters {
  /** Repetitions that were answered from here. */
  hits: number;
  /** Transactions remembered now. */
  entries: number;
  /** Transactions forgotten before their time, for want of room. */
  evicted: number;
  /** Bytes that the ring has grown to. */
  bytes: number;
}

export interface Seen {
  /**
   * Whether exactly these bytes were accepted a moment ago. `signatureOffset` is where the first
   * signature would start; it may lie outside of the bytes.
   */
  query(bytes: Uint8Array, signatureOffset: number, nowNs: number): boolean;
  /** Remembers an accepted transaction; copies its bytes. */
  insert(bytes: Uint8Array, signatureOffset: number, nowNs: number): void;
  readonly counters: SeenCounters;
}

/** Numbers of an entry: its hash, where its bytes are and how many, the older one of its bucket. */
const START = 1;
const SIZE = 2;
const OLDER = 3;
const ENTRY_NUMBERS = 4;
const NONE = -1;

/** Of fewer bytes nothing is known. */
const SIGNATURE_BYTES_MIN = 6;
/** Where the second half of a signature begins: a signer makes the first as he likes, not this. */
const SCALAR_AT = 32;

export function createSeen(options: SeenOptions = {}): Seen {
  return new SeenRing(
    options.entriesMax ?? SEEN_TRANSACTIONS_MAX,
    options.bytesMax ?? SEEN_BYTES_MAX,
    (options.keepMs ?? SEEN_KEEP_MS) * NS_PER_MS,
  );
}

class SeenRing implements Seen {
  readonly counters: SeenCounters = { hits: 0, entries: 0, evicted: 0, bytes: 0 };
  readonly #entriesMax: number;
  readonly #bytesMax: number;
  readonly #keepNs: number;
  readonly #arena: Buffer;
  readonly #entries: Int32Array;
  readonly #insertedNs: Float64Array;
  /** The newest entry of each bucket. */
  readonly #buckets: Int32Array;
  /** Senders choose their signatures, so what spreads them is not theirs to know. */
  readonly #seed = randomInt(2 ** 32);
  /** The oldest entry, how many there are, and where the next bytes go. */
  #oldest = 0;
  #count = 0;
  #head = 0;

  constructor(entriesMax: number, bytesMax: number, keepNs: number) {
    this.#entriesMax = entriesMax;
    this.#bytesMax = bytesMax;
    this.#keepNs = keepNs;
    this.#arena = Buffer.alloc(bytesMax);
    this.counters.bytes = Math.min(bytesMax, BYTES_MIN);
    this.#entries = new Int32Array(entriesMax * ENTRY_NUMBERS);
    this.#insertedNs = new Float64Array(entriesMax);
    this.#buckets = new Int32Array(2 ** Math.ceil(Math.log2(entriesMax + 1))).fill(NONE);
  }

  query(bytes: Uint8Array, signatureOffset: number, nowNs: number): boolean {
    if (!isInside(bytes, signatureOffset)) return false;
    const hash = this.#hash(bytes, signatureOffset);
    const entries = this.#entries;
    let entry = this.#buckets[hash & (this.#buckets.length - 1)] ?? NONE;
    for (; entry !== NONE; entry = entries[entry * ENTRY_NUMBERS + OLDER] ?? NONE) {
      const at = entry * ENTRY_NUMBERS;
      if (entries[at] !== hash || entries[at + SIZE] !== bytes.length) continue;
      if (nowNs - (this.#insertedNs[entry] ?? 0) > this.#keepNs) return false;
      const start = entries[at + START] ?? 0;
      if (this.#arena.compare(bytes, 0, bytes.length, start, start + bytes.length) !== 0) continue;
      this.counters.hits += 1;
      return true;
    }
    return false;
  }

  insert(bytes: Uint8Array, signatureOffset: number, nowNs: number): void {
    const size = bytes.length;
    if (size > this.#bytesMax || !isInside(bytes, signatureOffset)) return;
    this.#expire(nowNs);
    this.#makeRoom(size);
    const hash = this.#hash(bytes, signatureOffset);
    const bucket = hash & (this.#buckets.length - 1);
    const entry = (this.#oldest + this.#count) % this.#entriesMax;
    const at = entry * ENTRY_NUMBERS;
    this.#entries[at] = hash;
    this.#entries[at + START] = this.#head;
    this.#entries[at + SIZE] = size;
    this.#entries[at + OLDER] = this.#buckets[bucket] ?? NONE;
    this.#insertedNs[entry] = nowNs;
    this.#buckets[bucket] = entry;
    this.#arena.set(bytes, this.#head);
    this.#head += size;
    this.#count += 1;
    this.counters.entries = this.#count;
  }

  /** Forgets the oldest entry: always the last one of its bucket. */
  #drop(): void {
    const entries = this.#entries;
    const entry = this.#oldest;
    const bucket = (entries[entry * ENTRY_NUMBERS] ?? 0) & (this.#buckets.length - 1);
    let newer = this.#buckets[bucket] ?? NONE;
    if (newer === entry) this.#buckets[bucket] = NONE;
    else {
      let next = entries[newer * ENTRY_NUMBERS + OLDER] ?? NONE;
      for (; next !== entry; next = entries[newer * ENTRY_NUMBERS + OLDER] ?? NONE) newer = next;
      entries[newer * ENTRY_NUMBERS + OLDER] = NONE;
    }
    this.#oldest = entry + 1 === this.#entriesMax ? 0 : entry + 1;
    this.#count -= 1;
  }

  #expire(nowNs: number): void {
    while (this.#count > 0 && nowNs - (this.#insertedNs[this.#oldest] ?? 0) > this.#keepNs) {
      this.#drop();
    }
  }

  /** Makes room for `size` bytes at the head; the oldest entries lie right behind it. */
  #makeRoom(size: number): void {
    if (this.#count === 0) this.#head = 0;
    const { counters } = this;
    while (this.#head + size > counters.bytes && this.#mayGrow()) {
      counters.bytes = Math.min(this.#bytesMax, Math.ceil(counters.bytes * GROWTH));
    }
    if (this.#head + size > counters.bytes) {
      // What lies between here and the end is older than what lies at the start.
      while (this.#count > 0 && this.#oldestStart() >= this.#head) this.#evict();
      this.#head = 0;
    }
    while (this.#count > 0 && this.#oldestOverlaps(size)) this.#evict();
    while (this.#count >= this.#entriesMax) this.#evict();
  }

  /** Whether the ring had better grow than go back to its start, where little is free. */
  #mayGrow(): boolean {
    const { bytes } = this.counters;
    if (bytes === this.#bytesMax) return false;
    if (this.#count === 0) return true;
    // Behind the head lie only those that have to go anyway, and at the start what came later.
    const start = this.#oldestStart();
    return start < this.#head && start < bytes * FREE_SHARE;
  }

  #evict(): void {
    this.#drop();
    this.counters.evicted += 1;
  }

  #oldestStart(): number {
    return this.#entries[this.#oldest * ENTRY_NUMBERS + START] ?? 0;
  }

  #oldestOverlaps(size: number): boolean {
    const start = this.#oldestStart();
    const oldestSize = this.#entries[this.#oldest * ENTRY_NUMBERS + SIZE] ?? 0;
    return start < this.#head + size && this.#head < start + oldestSize;
  }

  #hash(bytes: Uint8Array, offset: number): number {
    const first = Math.imul(wordAt(bytes, offset) ^ this.#seed, 0x9e3779b1);
    const scalar = offset + SCALAR_AT;
    const low = Math.imul((first ^ (first >>> 15)) + wordAt(bytes, scalar), 0x85ebca6b);
    const all = Math.imul((low ^ (low >>> 13)) + wordAt(bytes, scalar + 4), 0xc2b2ae35);
    return all ^ (all >>> 16);
  }
}

/** Bytes at first, by how much more each time, and what must be free at the start to go back. */
const BYTES_MIN = 1024 * 1024;
const GROWTH = 1.5;
const FREE_SHARE = 1 / 4;

function wordAt(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
  return low | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24);
}

function isInside(bytes: Uint8Array, offset: number): boolean {
  return offset >= 0 && offset + SIGNATURE_BYTES_MIN <= bytes.length;
}
