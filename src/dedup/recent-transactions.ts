/**
 * The dedup cache: recently accepted transactions, so that a duplicate gets the same response as
 * the original and costs neither a signature verification nor a stream.
 *
 * It is queried before a transaction is decoded and written only once its signatures are verified:
 * reserved before it is sent, and committed once it is accepted. So no client can insert an entry
 * with another signer's signature, and an entry matches only identical bytes. The bytes are in one
 * ring buffer, oldest overwritten first, with an index of numbers; nothing is
 * allocated after the start, so no transaction outlives its request in the garbage collector's
 * memory. The ring starts small and grows on demand: memory never written to is not resident.
 *
 *     buffer ├──── older ────┤ head ▶ ├──── older still ────┤
 *     index  hash of the signature ─▶ newest entry of its bucket ─▶ older ─▶ NONE
 *
 * Threads may share one cache: all of it is in shared memory, and each operation holds a lock for a
 * microsecond. A thread that does not get the lock in 50 ms proceeds without: a duplicate then
 * counts as new, which leaders tolerate.
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
  /** How long a thread waits for the lock. */
  readonly lockMs?: number;
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

/**
 * new: reserved for the caller until commit or rollback. duplicate: accepted recently. pending:
 * another thread has reserved it and has not committed or rolled back yet.
 */
export type Reservation = "new" | "duplicate" | "pending";

export interface DedupCache {
  /**
   * Whether exactly these bytes were accepted recently. `signatureOffset` is where the first
   * signature would start; it may be out of range.
   */
  query(bytes: Uint8Array, signatureOffset: number, nowNs: number): boolean;
  /** Inserts an accepted transaction; copies its bytes. */
  insert(bytes: Uint8Array, signatureOffset: number, nowNs: number): void;
  /**
   * Reserves an entry for a transaction that is about to be accepted, if it is new. The caller must
   * commit it, and only then does it match duplicates, or roll it back.
   */
  reserve(bytes: Uint8Array, signatureOffset: number, nowNs: number): Reservation;
  /** The reserved transaction is accepted. */
  commit(bytes: Uint8Array, signatureOffset: number): void;
  /**
   * Before a further copy of an accepted transaction: from now on its entry is of `nowNs`. Returns
   * false, and changes nothing, if an entry is newer than `sinceNs`, the newest that the caller
   * knows of: then another thread sends it, or has just sent it.
   */
  renew(bytes: Uint8Array, signatureOffset: number, sinceNs: number, nowNs: number): boolean;
  /** Removes a reservation, because the transaction is not accepted. */
  rollback(bytes: Uint8Array, signatureOffset: number): void;
  readonly counters: Readonly<DedupCounters>;
}

/** Header int32s before the entries: the lock, and the state of the ring. */
const LOCK = 0;
/** The oldest entry, the count, where the next bytes go, and the current capacity. */
const OLDEST = 1;
const COUNT = 2;
const HEAD = 3;
const CAPACITY = 4;
/** Clients choose their signatures, so the hash seed must be unknown to them. */
const SEED = 5;
const EVICTED = 6;
const WORDS = 16;

/**
 * Fields of an entry: hash, start and size of its bytes (size below 0: rolled back; plus PENDING:
 * reserved), and the next older entry of its bucket.
 */
const START = 1;
const SIZE = 2;
const OLDER = 3;
const ENTRY_NUMBERS = 4;
const NONE = -1;
/** Greater than the size of any transaction. */
const PENDING = 2 ** 30;
/** Shorter inputs are never cached. */
const SIGNATURE_BYTES_MIN = 6;
/** Offset of the second half of a signature: a signer can choose the first half, not this. */
const SCALAR_AT = 32;

export function createDedupCache(options: DedupOptions = {}): DedupCache {
  const sizes = sizesOf(options);
  const memory = new ArrayBuffer(sizes.bytes);
  return new DedupRing(prepared(memory, sizes), sizes, false);
}

/** Fresh memory for a shared cache; each thread opens it with `openDedupCache`. */
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
  /** Where each part starts, and the total size in bytes. */
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

/** Initializes the memory as an empty ring. */
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
  /** null for a cache of one thread. */
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

  renew(bytes: Uint8Array, signatureOffset: number, sinceNs: number, nowNs: number): boolean {
    if (bytes.length > this.#bytesMax || !isInside(bytes, signatureOffset)) return true;
    if (!this.#lock()) return true;
    const hash = this.#hash(bytes, signatureOffset);
    const entry = this.#find(bytes, hash, nowNs);
    const isNewer = entry !== NONE && (this.#insertedNs[entry] ?? 0) > sinceNs;
    if (!isNewer) this.#add(bytes, hash, nowNs, bytes.length);
    this.#unlock();
    return !isNewer;
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

  /** The entry of exactly these bytes, in any state; NONE if absent or expired. */
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

  /** Removes the oldest entry: always the last one of its bucket. */
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

  /** Makes room for `size` bytes at the head; the oldest entries follow directly after it. */
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
      // Entries between here and the end are older than those at the start.
      while (count() > 0 && this.#oldestStart() >= head()) this.#evict();
      int32[HEAD] = 0;
    }
    while (count() > 0 && this.#oldestOverlaps(size)) this.#evict();
    while (count() >= this.#entriesMax) this.#evict();
  }

  /** Whether to grow the ring instead of wrapping, because little is free at its start. */
  #mayGrow(): boolean {
    const int32 = this.#int32;
    const capacity = int32[CAPACITY] ?? 0;
    if (capacity === this.#bytesMax) return false;
    if (int32[COUNT] === 0) return true;
    // After the head lie only entries that expire first; newer ones are at the start.
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

  /** Whether this thread may proceed; it must call `#unlock` afterwards. */
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

/** Lock timeout of a shared cache. */
const LOCK_MS = 50;

/** Initial bytes, growth factor, and the share that must be free at the start to wrap. */
const BYTES_MIN = 1024 * 1024;
const GROWTH = 1.5;
const FREE_SHARE = 1 / 4;

function wordAt(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
  return low | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24);
}

/** V8 copies to shared memory by words if both addresses are multiples of eight, else by bytes. */
function spaceOf(size: number): number {
  return (size + 7) & ~7;
}

/** The size of an entry; negative for a rolled-back one. */
function bytesOf(size: number): number {
  return size < PENDING ? size : size - PENDING;
}

function isInside(bytes: Uint8Array, offset: number): boolean {
  return offset >= 0 && offset + SIGNATURE_BYTES_MIN <= bytes.length;
}
