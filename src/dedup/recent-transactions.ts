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
 * Threads may share one: all of it lies in memory that they share, and who is at it holds a lock,
 * for a microsecond. Who does not get it in 50 milliseconds goes without: then a repetition is
 * taken for new, which the leaders do not mind.
 *
 * Hot path: one hash of twelve bytes, one comparison of memory.
 */

import { randomInt } from "node:crypto";
import { NS_PER_MS } from "../core/clock.ts";
import { SharedLock } from "../runtime/shared-lock.ts";
import { DEDUP_BYTES_MAX, DEDUP_KEEP_MS, DEDUP_TRANSACTIONS_MAX } from "./limits.ts";

export interface DedupOptions {
  readonly entriesMax?: number;
  readonly bytesMax?: number;
  readonly keepMs?: number;
  /** How long a thread waits for one that is at it. */
  readonly lockMs?: number;
}

export interface DedupCounters {
  /** Repetitions that were answered from here. */
  hits: number;
  /** Transactions remembered now. */
  entries: number;
  /** Transactions forgotten before their time, for want of room. */
  evicted: number;
  /** Bytes that the ring has grown to. */
  bytes: number;
}

/**
 * New: nobody else has it until it is retracted. Known: it was accepted a moment ago. Undecided:
 * another thread has claimed it and has to say yet whether it is accepted.
 */
export type Reservation = "new" | "duplicate" | "pending";

export interface DedupCache {
  /**
   * Whether exactly these bytes were accepted a moment ago. `signatureOffset` is where the first
   * signature would start; it may lie outside of the bytes.
   */
  query(bytes: Uint8Array, signatureOffset: number, nowNs: number): boolean;
  /** Remembers an accepted transaction; copies its bytes. */
  insert(bytes: Uint8Array, signatureOffset: number, nowNs: number): void;
  /**
   * Remembers one that is about to be accepted, if it is new. Who has claimed it confirms it, and
   * only then is a repetition answered by it, or retracts it.
   */
  reserve(bytes: Uint8Array, signatureOffset: number, nowNs: number): Reservation;
  /** What was claimed is accepted. */
  commit(bytes: Uint8Array, signatureOffset: number): void;
  /** Forgets what was claimed, because it is not accepted after all. */
  rollback(bytes: Uint8Array, signatureOffset: number): void;
  readonly counters: Readonly<DedupCounters>;
}

/** Words before the entries: the lock, and what is known of the ring. */
const LOCK = 0;
/** The oldest entry, how many there are, where the next bytes go, how far the ring has grown. */
const OLDEST = 1;
const COUNT = 2;
const HEAD = 3;
const CAPACITY = 4;
/** Senders choose their signatures, so what spreads them is not theirs to know. */
const SEED = 5;
const EVICTED = 6;
const WORDS = 16;

/**
 * Numbers of an entry: its hash, where its bytes are and how many (below 0, as no transaction has:
 * it was retracted; with PENDING added: it was claimed), the older one of its bucket.
 */
const START = 1;
const SIZE = 2;
const OLDER = 3;
const ENTRY_NUMBERS = 4;
const NONE = -1;
/** More than any transaction has bytes. */
const PENDING = 2 ** 30;
/** Of fewer bytes nothing is known. */
const SIGNATURE_BYTES_MIN = 6;
/** Where the second half of a signature begins: a signer makes the first as he likes, not this. */
const SCALAR_AT = 32;

export function createDedupCache(options: DedupOptions = {}): DedupCache {
  const sizes = sizesOf(options);
  const memory = new ArrayBuffer(sizes.bytes);
  return new DedupRing(prepared(memory, sizes), sizes, false);
}

/** Fresh memory for one that threads share, each by its own `openDedupCache`. */
export function dedupMemory(options: DedupOptions = {}): SharedArrayBuffer {
  const sizes = sizesOf(options);
  return prepared(new SharedArrayBuffer(sizes.bytes), sizes);
}

/** This thread's view of `memory`, which `dedupMemory` made with the same options. */
export function openDedupCache(memory: SharedArrayBuffer, options: DedupOptions = {}): DedupCache {
  return new DedupRing(memory, sizesOf(options), true);
}

interface Sizes {
  readonly entriesMax: number;
  readonly bytesMax: number;
  readonly keepNs: number;
  readonly lockMs: number;
  readonly buckets: number;
  /** Where each part begins, and how many bytes all of them take. */
  readonly entriesAt: number;
  readonly insertedAt: number;
  readonly bucketsAt: number;
  readonly bufferAt: number;
  readonly bytes: number;
}

function sizesOf(options: DedupOptions): Sizes {
  const entriesMax = options.entriesMax ?? DEDUP_TRANSACTIONS_MAX;
  const bytesMax = options.bytesMax ?? DEDUP_BYTES_MAX;
  const keepNs = (options.keepMs ?? DEDUP_KEEP_MS) * NS_PER_MS;
  const buckets = 2 ** Math.ceil(Math.log2(entriesMax + 1));
  const insertedAt = 4 * WORDS;
  const entriesAt = insertedAt + 8 * entriesMax;
  const bucketsAt = entriesAt + 4 * ENTRY_NUMBERS * entriesMax;
  const bufferAt = bucketsAt + 4 * buckets;
  const parts = { insertedAt, entriesAt, bucketsAt, bufferAt };
  const lockMs = options.lockMs ?? LOCK_MS;
  return { entriesMax, bytesMax, keepNs, lockMs, buckets, ...parts, bytes: bufferAt + bytesMax };
}

/** The same memory, as an empty ring. */
function prepared<Memory extends ArrayBufferLike>(memory: Memory, sizes: Sizes): Memory {
  const int32 = new Int32Array(memory, 0, WORDS);
  int32[CAPACITY] = Math.min(sizes.bytesMax, BYTES_MIN);
  int32[SEED] = randomInt(2 ** 32);
  new Int32Array(memory, sizes.bucketsAt, sizes.buckets).fill(NONE);
  return memory;
}

class DedupRing implements DedupCache {
  readonly counters: Readonly<DedupCounters>;
  readonly #entriesMax: number;
  readonly #bytesMax: number;
  readonly #keepNs: number;
  /** null for a ring that is this thread's alone. */
  readonly #shared: SharedLock | null;
  readonly #int32: Int32Array;
  readonly #buffer: Buffer;
  readonly #entries: Int32Array;
  readonly #insertedNs: Float64Array;
  /** The newest entry of each bucket. */
  readonly #buckets: Int32Array;
  readonly #seed: number;
  #hits = 0;

  constructor(memory: ArrayBufferLike, sizes: Sizes, isShared: boolean) {
    this.#entriesMax = sizes.entriesMax;
    this.#bytesMax = sizes.bytesMax;
    this.#keepNs = sizes.keepNs;
    this.#int32 = new Int32Array(memory, 0, WORDS);
    this.#shared = isShared ? new SharedLock(this.#int32, LOCK, sizes.lockMs) : null;
    this.#buffer = Buffer.from(memory, sizes.bufferAt, sizes.bytesMax);
    this.#entries = new Int32Array(memory, sizes.entriesAt, sizes.entriesMax * ENTRY_NUMBERS);
    this.#insertedNs = new Float64Array(memory, sizes.insertedAt, sizes.entriesMax);
    this.#buckets = new Int32Array(memory, sizes.bucketsAt, sizes.buckets);
    this.#seed = this.#int32[SEED] ?? 0;
    this.counters = countersOf(this.#int32, () => this.#hits);
  }

  query(bytes: Uint8Array, signatureOffset: number, nowNs: number): boolean {
    if (!isInside(bytes, signatureOffset) || !this.#lock()) return false;
    const hash = this.#hash(bytes, signatureOffset);
    const isKnown = this.#isCommitted(this.#find(bytes, hash, nowNs));
    this.#unlock();
    if (isKnown) this.#hits += 1;
    return isKnown;
  }

  insert(bytes: Uint8Array, signatureOffset: number, nowNs: number): void {
    if (bytes.length > this.#bytesMax || !isInside(bytes, signatureOffset)) return;
    if (!this.#lock()) return;
    this.#add(bytes, this.#hash(bytes, signatureOffset), nowNs, bytes.length);
    this.#unlock();
  }

  reserve(bytes: Uint8Array, signatureOffset: number, nowNs: number): Reservation {
    if (bytes.length > this.#bytesMax || !isInside(bytes, signatureOffset)) return "new";
    if (!this.#lock()) return "new";
    const hash = this.#hash(bytes, signatureOffset);
    const entry = this.#find(bytes, hash, nowNs);
    const isKnown = this.#isCommitted(entry);
    if (isKnown) this.#hits += 1;
    else if (entry === NONE) this.#add(bytes, hash, nowNs, bytes.length + PENDING);
    this.#unlock();
    return isKnown ? "duplicate" : entry === NONE ? "new" : "pending";
  }

  commit(bytes: Uint8Array, signatureOffset: number): void {
    this.#resolve(bytes, signatureOffset, bytes.length);
  }

  rollback(bytes: Uint8Array, signatureOffset: number): void {
    this.#resolve(bytes, signatureOffset, -bytes.length);
  }

  #resolve(bytes: Uint8Array, signatureOffset: number, size: number): void {
    if (!isInside(bytes, signatureOffset) || !this.#lock()) return;
    const entry = this.#find(bytes, this.#hash(bytes, signatureOffset), 0);
    if (entry !== NONE) this.#entries[entry * ENTRY_NUMBERS + SIZE] = size;
    this.#unlock();
  }

  #isCommitted(entry: number): boolean {
    return entry !== NONE && (this.#entries[entry * ENTRY_NUMBERS + SIZE] ?? 0) < PENDING;
  }

  /** The entry of exactly these bytes, decided or not; NONE where none still counts. */
  #find(bytes: Uint8Array, hash: number, nowNs: number): number {
    const entries = this.#entries;
    let entry = this.#buckets[hash & (this.#buckets.length - 1)] ?? NONE;
    for (; entry !== NONE; entry = entries[entry * ENTRY_NUMBERS + OLDER] ?? NONE) {
      const at = entry * ENTRY_NUMBERS;
      if (entries[at] !== hash || bytesOf(entries[at + SIZE] ?? 0) !== bytes.length) continue;
      if (nowNs - (this.#insertedNs[entry] ?? 0) > this.#keepNs) return NONE;
      const start = entries[at + START] ?? 0;
      if (this.#buffer.compare(bytes, 0, bytes.length, start, start + bytes.length) === 0) {
        return entry;
      }
    }
    return NONE;
  }

  #add(bytes: Uint8Array, hash: number, nowNs: number, size: number): void {
    const int32 = this.#int32;
    this.#expire(nowNs);
    this.#makeRoom(bytes.length);
    const bucket = hash & (this.#buckets.length - 1);
    const count = int32[COUNT] ?? 0;
    const head = int32[HEAD] ?? 0;
    const entry = ((int32[OLDEST] ?? 0) + count) % this.#entriesMax;
    const at = entry * ENTRY_NUMBERS;
    this.#entries[at] = hash;
    this.#entries[at + START] = head;
    this.#entries[at + SIZE] = size;
    this.#entries[at + OLDER] = this.#buckets[bucket] ?? NONE;
    this.#insertedNs[entry] = nowNs;
    this.#buckets[bucket] = entry;
    this.#buffer.set(bytes, head);
    int32[HEAD] = head + spaceOf(bytes.length);
    int32[COUNT] = count + 1;
  }

  /** Forgets the oldest entry: always the last one of its bucket. */
  #drop(): void {
    const entries = this.#entries;
    const int32 = this.#int32;
    const entry = int32[OLDEST] ?? 0;
    const bucket = (entries[entry * ENTRY_NUMBERS] ?? 0) & (this.#buckets.length - 1);
    let newer = this.#buckets[bucket] ?? NONE;
    if (newer === entry) this.#buckets[bucket] = NONE;
    else {
      let next = entries[newer * ENTRY_NUMBERS + OLDER] ?? NONE;
      for (; next !== entry; next = entries[newer * ENTRY_NUMBERS + OLDER] ?? NONE) newer = next;
      entries[newer * ENTRY_NUMBERS + OLDER] = NONE;
    }
    int32[OLDEST] = entry + 1 === this.#entriesMax ? 0 : entry + 1;
    int32[COUNT] = (int32[COUNT] ?? 0) - 1;
  }

  #expire(nowNs: number): void {
    const int32 = this.#int32;
    while ((int32[COUNT] ?? 0) > 0 && nowNs - this.#oldestNs() > this.#keepNs) this.#drop();
  }

  #oldestNs(): number {
    return this.#insertedNs[this.#int32[OLDEST] ?? 0] ?? 0;
  }

  /** Makes room for `size` bytes at the head; the oldest entries lie right behind it. */
  #makeRoom(size: number): void {
    const int32 = this.#int32;
    const count = (): number => int32[COUNT] ?? 0;
    const head = (): number => int32[HEAD] ?? 0;
    const capacity = (): number => int32[CAPACITY] ?? 0;
    if (count() === 0) int32[HEAD] = 0;
    while (head() + size > capacity() && this.#mayGrow()) {
      int32[CAPACITY] = Math.min(this.#bytesMax, Math.ceil(capacity() * GROWTH));
    }
    if (head() + size > capacity()) {
      // What lies between here and the end is older than what lies at the start.
      while (count() > 0 && this.#oldestStart() >= head()) this.#evict();
      int32[HEAD] = 0;
    }
    while (count() > 0 && this.#oldestOverlaps(size)) this.#evict();
    while (count() >= this.#entriesMax) this.#evict();
  }

  /** Whether the ring had better grow than go back to its start, where little is free. */
  #mayGrow(): boolean {
    const int32 = this.#int32;
    const capacity = int32[CAPACITY] ?? 0;
    if (capacity === this.#bytesMax) return false;
    if (int32[COUNT] === 0) return true;
    // Behind the head lie only those that have to go anyway, and at the start what came later.
    const start = this.#oldestStart();
    return start < (int32[HEAD] ?? 0) && start < capacity * FREE_SHARE;
  }

  #evict(): void {
    this.#drop();
    this.#int32[EVICTED] = (this.#int32[EVICTED] ?? 0) + 1;
  }

  #oldestStart(): number {
    return this.#entries[(this.#int32[OLDEST] ?? 0) * ENTRY_NUMBERS + START] ?? 0;
  }

  #oldestOverlaps(size: number): boolean {
    const head = this.#int32[HEAD] ?? 0;
    const at = (this.#int32[OLDEST] ?? 0) * ENTRY_NUMBERS;
    const start = this.#oldestStart();
    return start < head + size && head < start + Math.abs(bytesOf(this.#entries[at + SIZE] ?? 0));
  }

  /** Whether this thread may go on, and has to `#unlock` afterwards. */
  #lock(): boolean {
    return this.#shared === null || this.#shared.acquire();
  }

  #unlock(): void {
    this.#shared?.release();
  }

  #hash(bytes: Uint8Array, offset: number): number {
    const first = Math.imul(wordAt(bytes, offset) ^ this.#seed, 0x9e3779b1);
    const scalar = offset + SCALAR_AT;
    const low = Math.imul((first ^ (first >>> 15)) + wordAt(bytes, scalar), 0x85ebca6b);
    const all = Math.imul((low ^ (low >>> 13)) + wordAt(bytes, scalar + 4), 0xc2b2ae35);
    return all ^ (all >>> 16);
  }
}

function countersOf(int32: Int32Array, hits: () => number): Readonly<DedupCounters> {
  return {
    get hits() {
      return hits();
    },
    get entries() {
      return int32[COUNT] ?? 0;
    },
    get evicted() {
      return int32[EVICTED] ?? 0;
    },
    get bytes() {
      return int32[CAPACITY] ?? 0;
    },
  };
}

/** How long it may take to get at a ring that is shared. */
const LOCK_MS = 50;

/** Bytes at first, by how much more each time, and what must be free at the start to go back. */
const BYTES_MIN = 1024 * 1024;
const GROWTH = 1.5;
const FREE_SHARE = 1 / 4;

function wordAt(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
  return low | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24);
}

/** V8 copies into shared memory by words where both are at multiples of eight, else by bytes. */
function spaceOf(size: number): number {
  return (size + 7) & ~7;
}

/** The size of an entry, below 0 of one that was retracted. */
function bytesOf(size: number): number {
  return size < PENDING ? size : size - PENDING;
}

function isInside(bytes: Uint8Array, offset: number): boolean {
  return offset >= 0 && offset + SIGNATURE_BYTES_MIN <= bytes.length;
}
