/**
 * The dedup cache of the portable engine: recently accepted transactions, so that a duplicate gets
 * the same response as the original and costs neither a signature verification nor a stream. The
 * native engine has its own, for several threads (`native/src/submit/dedup.rs`).
 *
 * It is queried before a transaction is decoded and written only once its signatures are verified.
 * So no client can insert an entry with another signer's signature, and an entry matches only
 * identical bytes. The bytes are in one ring buffer, oldest overwritten first, with an index of
 * numbers; nothing is allocated after the start, so no transaction outlives its request in the
 * garbage collector's memory. The ring starts small and grows on demand: memory never written to is
 * not resident.
 *
 *     buffer ├──── older ────┤ head ▶ ├──── older still ────┤
 *     index  hash of the signature ─▶ newest entry of its bucket ─▶ older ─▶ NONE
 *
 * Hot path: one hash of twelve bytes, one comparison of memory.
 */

import { randomInt } from "node:crypto";
import { NS_PER_MS } from "../core/clock.ts";
import { DEDUP_BYTES_MAX, DEDUP_KEEP_MS, DEDUP_TRANSACTIONS_MAX } from "./limits.ts";

export interface DedupOptions {
  readonly entriesMax?: number;
  readonly bytesMax?: number;
  readonly keepMs?: number;
}

export interface DedupCounters {
  /** Duplicates found. */
  hits: number;
  /** Transactions in the cache. */
  entries: number;
  /** Transactions evicted early because the cache was full. */
  evicted: number;
  /** Current capacity of the ring in bytes. */
  bytes: number;
}

/** Fields of an entry: hash, start and size of its bytes, and the older entry of its bucket. */
const START = 1;
const SIZE = 2;
const OLDER = 3;
const ENTRY_NUMBERS = 4;
const NONE = -1;
/** Shorter inputs are never cached. */
const SIGNATURE_BYTES_MIN = 6;
/** Offset of the second half of a signature: a signer can choose the first half, not this. */
const SCALAR_AT = 32;

export function createDedupCache(options: DedupOptions = {}): DedupCache {
  return new DedupCache(options);
}

export class DedupCache {
  readonly counters: DedupCounters;
  readonly #entriesMax: number;
  readonly #bytesMax: number;
  readonly #keepNs: number;
  readonly #buffer: Buffer;
  readonly #entries: Int32Array;
  readonly #insertedNs: Float64Array;
  /** The newest entry of each bucket. */
  readonly #buckets: Int32Array;
  /** Clients choose their signatures, so the hash seed must be unknown to them. */
  readonly #seed = randomInt(2 ** 32);
  /** The oldest entry, and where the next bytes go. */
  #oldest = 0;
  #head = 0;

  constructor({ entriesMax, bytesMax, keepMs }: DedupOptions) {
    this.#entriesMax = entriesMax ?? DEDUP_TRANSACTIONS_MAX;
    this.#bytesMax = bytesMax ?? DEDUP_BYTES_MAX;
    this.#keepNs = (keepMs ?? DEDUP_KEEP_MS) * NS_PER_MS;
    this.#buffer = Buffer.from(new ArrayBuffer(this.#bytesMax));
    this.#entries = new Int32Array(this.#entriesMax * ENTRY_NUMBERS);
    this.#insertedNs = new Float64Array(this.#entriesMax);
    this.#buckets = new Int32Array(2 ** Math.ceil(Math.log2(this.#entriesMax + 1))).fill(NONE);
    const bytes = Math.min(this.#bytesMax, BYTES_MIN);
    this.counters = { hits: 0, entries: 0, evicted: 0, bytes };
  }

  /**
   * Whether exactly these bytes were accepted recently. `signatureOffset` is where the first
   * signature would start; it may be out of range.
   */
  query(bytes: Uint8Array, signatureOffset: number, nowNs: number): boolean {
    if (!isInside(bytes, signatureOffset)) return false;
    const isKnown = this.#find(bytes, this.#hash(bytes, signatureOffset), nowNs) !== NONE;
    if (isKnown) this.counters.hits += 1;
    return isKnown;
  }

  /** Inserts an accepted transaction; copies its bytes. */
  insert(bytes: Uint8Array, signatureOffset: number, nowNs: number): void {
    if (bytes.length > this.#bytesMax || !isInside(bytes, signatureOffset)) return;
    this.#add(bytes, this.#hash(bytes, signatureOffset), nowNs);
  }

  /**
   * Before a further copy of an accepted transaction: from now on its entry is of `nowNs`. Returns
   * false, and changes nothing, if an entry is newer than `sinceNs`, the newest that the caller
   * knows of: then it was just sent.
   */
  renew(bytes: Uint8Array, signatureOffset: number, sinceNs: number, nowNs: number): boolean {
    if (bytes.length > this.#bytesMax || !isInside(bytes, signatureOffset)) return true;
    const hash = this.#hash(bytes, signatureOffset);
    const entry = this.#find(bytes, hash, nowNs);
    const isNewer = entry !== NONE && (this.#insertedNs[entry] ?? 0) > sinceNs;
    if (!isNewer) this.#add(bytes, hash, nowNs);
    return !isNewer;
  }

  /** Forgets a transaction, unless its entry is newer than `sinceNs`. */
  forget(bytes: Uint8Array, signatureOffset: number, sinceNs: number): void {
    if (!isInside(bytes, signatureOffset)) return;
    const entry = this.#find(bytes, this.#hash(bytes, signatureOffset), sinceNs);
    // The search ends at an entry that has expired, before older ones of these bytes.
    if (entry !== NONE && (this.#insertedNs[entry] ?? 0) <= sinceNs) {
      this.#insertedNs[entry] = Number.NEGATIVE_INFINITY;
    }
  }

  /** The entry of exactly these bytes; NONE if absent or expired. */
  #find(bytes: Uint8Array, hash: number, nowNs: number): number {
    const entries = this.#entries;
    let entry = this.#buckets[hash & (this.#buckets.length - 1)] ?? NONE;
    for (; entry !== NONE; entry = entries[entry * ENTRY_NUMBERS + OLDER] ?? NONE) {
      const at = entry * ENTRY_NUMBERS;
      if (entries[at] !== hash || entries[at + SIZE] !== bytes.length) continue;
      if (nowNs - (this.#insertedNs[entry] ?? 0) > this.#keepNs) return NONE;
      const start = entries[at + START] ?? 0;
      if (this.#buffer.compare(bytes, 0, bytes.length, start, start + bytes.length) === 0) {
        return entry;
      }
    }
    return NONE;
  }

  #add(bytes: Uint8Array, hash: number, nowNs: number): void {
    const { counters } = this;
    this.#expire(nowNs);
    this.#makeRoom(bytes.length);
    const bucket = hash & (this.#buckets.length - 1);
    const entry = (this.#oldest + counters.entries) % this.#entriesMax;
    const at = entry * ENTRY_NUMBERS;
    this.#entries[at] = hash;
    this.#entries[at + START] = this.#head;
    this.#entries[at + SIZE] = bytes.length;
    this.#entries[at + OLDER] = this.#buckets[bucket] ?? NONE;
    this.#insertedNs[entry] = nowNs;
    this.#buckets[bucket] = entry;
    this.#buffer.set(bytes, this.#head);
    this.#head += bytes.length;
    counters.entries += 1;
  }

  /** Removes the oldest entry: always the last one of its bucket. */
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
    this.counters.entries -= 1;
  }

  #expire(nowNs: number): void {
    while (
      this.counters.entries > 0 &&
      nowNs - (this.#insertedNs[this.#oldest] ?? 0) > this.#keepNs
    ) {
      this.#drop();
    }
  }

  /** Makes room for `size` bytes at the head; the oldest entries follow directly after it. */
  #makeRoom(size: number): void {
    const { counters } = this;
    if (counters.entries === 0) this.#head = 0;
    while (this.#head + size > counters.bytes && this.#mayGrow()) {
      counters.bytes = Math.min(this.#bytesMax, Math.ceil(counters.bytes * GROWTH));
    }
    if (this.#head + size > counters.bytes) {
      // Entries between here and the end are older than those at the start.
      while (counters.entries > 0 && this.#oldestStart() >= this.#head) this.#evict();
      this.#head = 0;
    }
    while (counters.entries > 0 && this.#oldestOverlaps(size)) this.#evict();
    while (counters.entries >= this.#entriesMax) this.#evict();
  }

  /** Whether to grow the ring instead of wrapping, because little is free at its start. */
  #mayGrow(): boolean {
    const { bytes, entries } = this.counters;
    if (bytes === this.#bytesMax) return false;
    if (entries === 0) return true;
    // After the head lie only entries that expire first; newer ones are at the start.
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
    const end = start + (this.#entries[this.#oldest * ENTRY_NUMBERS + SIZE] ?? 0);
    return start < this.#head + size && this.#head < end;
  }

  #hash(bytes: Uint8Array, offset: number): number {
    const first = Math.imul(wordAt(bytes, offset) ^ this.#seed, 0x9e3779b1);
    const scalar = offset + SCALAR_AT;
    const low = Math.imul((first ^ (first >>> 15)) + wordAt(bytes, scalar), 0x85ebca6b);
    const all = Math.imul((low ^ (low >>> 13)) + wordAt(bytes, scalar + 4), 0xc2b2ae35);
    return all ^ (all >>> 16);
  }
}

/** Initial bytes, growth factor, and the share that must be free at the start to wrap. */
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
