/**
 * Which transactions were accepted a moment ago, so that a repetition answers with its signature
 * again and costs neither a verification nor a stream.
 *
 * Asked before a transaction is decoded, told only after it was accepted: so nobody can put an
 * entry in with somebody else's signature, and an entry answers only for exactly the same bytes.
 * The bytes lie in one ring, oldest overwritten first; nothing is allocated after the start but
 * the map's own cells.
 *
 *     arena  ├──── older ────┤ next ▶ ├──── older still ────┤
 *
 * Hot path: one number as the key, one comparison of memory.
 */

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
}

export interface Seen {
  /**
   * The signature of the accepted transaction with exactly these bytes, null for none.
   * `signatureOffset` is where the first signature would start; it may lie outside of the bytes.
   */
  query(bytes: Uint8Array, signatureOffset: number, nowNs: number): string | null;
  /** Remembers an accepted transaction; copies its bytes. */
  insert(bytes: Uint8Array, signatureOffset: number, signature: string, nowNs: number): void;
  readonly counters: SeenCounters;
}

export function createSeen(options: SeenOptions = {}): Seen {
  const entriesMax = options.entriesMax ?? SEEN_TRANSACTIONS_MAX;
  const bytesMax = options.bytesMax ?? SEEN_BYTES_MAX;
  const keepNs = (options.keepMs ?? SEEN_KEEP_MS) * NS_PER_MS;
  const arena = Buffer.alloc(bytesMax);
  /** Entry i: its key, when it was put in, and where its bytes are. */
  const keys = new Float64Array(entriesMax);
  const insertedNs = new Float64Array(entriesMax);
  const starts = new Int32Array(entriesMax);
  const sizes = new Int32Array(entriesMax);
  const signatures: string[] = new Array<string>(entriesMax).fill("");
  const entryOf = new Map<number, number>();
  const counters: SeenCounters = { hits: 0, entries: 0, evicted: 0 };
  /** The oldest entry, how many there are, and where the next bytes go. */
  let oldest = 0;
  let count = 0;
  let head = 0;

  function drop(): void {
    const key = keys[oldest] ?? -1;
    // A later transaction with the same key may have taken its place in the map.
    if (entryOf.get(key) === oldest) entryOf.delete(key);
    signatures[oldest] = "";
    oldest = oldest + 1 === entriesMax ? 0 : oldest + 1;
    count -= 1;
  }

  function expire(nowNs: number): void {
    while (count > 0 && nowNs - (insertedNs[oldest] ?? 0) > keepNs) drop();
  }

  /** Makes room for `size` bytes at `head`; the oldest entries lie right behind it. */
  function makeRoom(size: number): void {
    if (head + size > bytesMax) {
      // What lies between here and the end is older than what lies at the start.
      while (count > 0 && (starts[oldest] ?? 0) >= head) evict();
      head = 0;
    }
    while (count > 0 && overlaps(starts[oldest] ?? 0, sizes[oldest] ?? 0, head, size)) evict();
    while (count >= entriesMax) evict();
  }

  function evict(): void {
    drop();
    counters.evicted += 1;
  }

  return {
    counters,
    query(bytes, signatureOffset, nowNs) {
      const entry = entryOf.get(keyAt(bytes, signatureOffset));
      if (entry === undefined || nowNs - (insertedNs[entry] ?? 0) > keepNs) return null;
      const start = starts[entry] ?? 0;
      const size = sizes[entry] ?? 0;
      if (size !== bytes.length) return null;
      if (arena.compare(bytes, 0, size, start, start + size) !== 0) return null;
      counters.hits += 1;
      return signatures[entry] ?? null;
    },
    insert(bytes, signatureOffset, signature, nowNs) {
      const size = bytes.length;
      const key = keyAt(bytes, signatureOffset);
      if (size > bytesMax || key < 0) return;
      expire(nowNs);
      makeRoom(size);
      const entry = (oldest + count) % entriesMax;
      keys[entry] = key;
      insertedNs[entry] = nowNs;
      starts[entry] = head;
      sizes[entry] = size;
      signatures[entry] = signature;
      arena.set(bytes, head);
      entryOf.set(key, entry);
      head += size;
      count += 1;
      counters.entries = count;
    },
  };
}

function overlaps(start: number, size: number, otherStart: number, otherSize: number): boolean {
  return start < otherStart + otherSize && otherStart < start + size;
}

/** The first 48 bits of the signature as a number; -1 where there are none. */
function keyAt(bytes: Uint8Array, offset: number): number {
  if (offset < 0 || offset + KEY_BYTES > bytes.length) return -1;
  const high = ((bytes[offset] ?? 0) << 16) | ((bytes[offset + 1] ?? 0) << 8);
  const low = ((bytes[offset + 3] ?? 0) << 16) | ((bytes[offset + 4] ?? 0) << 8);
  return (high | (bytes[offset + 2] ?? 0)) * KEY_HALF + (low | (bytes[offset + 5] ?? 0));
}

const KEY_BYTES = 6;
const KEY_HALF = 1 << 24;
