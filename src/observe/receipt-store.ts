/**
 * Where receipts are kept: columns of numbers in typed arrays, so that a million of them cost the
 * garbage collector nothing and memory is fixed by the bound.
 *
 *   sequence 0 1 2 …  ─▶ row = sequence mod rowsMax, oldest evicted first
 *   signature ─ seeded hash ─▶ bucket ─▶ row ─▶ next row of the bucket
 *   row ─▶ first copy ─▶ next copy; copies come from a free list and return to it on eviction
 *   packet id mod PACKETS ─▶ sequence; a packet so old that its place was taken is forgotten
 *
 * Memory is touched as it is first used. The seed keeps senders, who choose their signatures, from
 * filling one bucket.
 *
 * Hot path: `open`, `sequenceOfPacket` and `addCopy` run for each transaction and copy.
 */

import { randomInt } from "node:crypto";
import { COPY_REASONS, type CopyReason } from "../core/errors.ts";
import {
  RECEIPT_COPIES_MAX,
  RECEIPT_COPIES_MEAN,
  RECEIPT_OWNERS_MAX,
  RECEIPT_PACKETS_MAX,
} from "../core/limits.ts";
import { createStringColumn } from "./string-column.ts";

const SIGNATURE_BYTES = 64;
/** No row, no copy, no sequence. */
export const NONE = -1;

/** A copy's states. */
export const SENT = 0;
export const ACKED = 1;
export const FAILED = 2;
export const DROPPED = 3;

/** Reasons by number less one; the number 0 stands for none. */
// The keys of a literal are its own names.
const REASONS = Object.keys(COPY_REASONS) as readonly CopyReason[];
const REASON_NUMBERS: ReadonlyMap<CopyReason, number> = new Map(
  REASONS.map((reason, index) => [reason, index + 1]),
);

/** The number under which a copy's reason is kept. */
export function reasonNumber(reason: CopyReason | null): number {
  return reason === null ? 0 : (REASON_NUMBERS.get(reason) ?? 0);
}

export function reasonOf(number: number): CopyReason | null {
  return REASONS[number - 1] ?? null;
}

/** One row for each receipt. Strings of row r stand at r * RECEIPT_OWNERS_MAX and on. */
function createRows(count: number) {
  return {
    receivedNs: new Float64Array(count),
    /** The same moment by the wall clock, which may be set later. */
    receivedUnixMs: new Float64Array(count),
    decodedNs: new Float64Array(count),
    tipLamports: new Float64Array(count),
    priorityFeeLamports: new Float64Array(count),
    version: new Int8Array(count),
    /** Times this transaction was submitted, up to the column's maximum. */
    submissions: new Uint16Array(count),
    firstCopy: new Int32Array(count),
    lastCopy: new Int32Array(count),
    copyCount: new Uint8Array(count),
    /** Copies that found no place. */
    copiesLeftOut: new Uint16Array(count),
    owners: createStringColumn(),
  };
}

function createCopies(count: number) {
  return {
    next: new Int32Array(count),
    packetId: new Float64Array(count),
    slot: new Float64Array(count),
    sentNs: new Float64Array(count),
    endedNs: new Float64Array(count),
    rttUs: new Float32Array(count),
    state: new Uint8Array(count),
    reason: new Uint8Array(count),
    identity: createStringColumn(),
    address: createStringColumn(),
  };
}

function createPackets() {
  return {
    id: new Float64Array(RECEIPT_PACKETS_MAX).fill(NONE),
    sequence: new Float64Array(RECEIPT_PACKETS_MAX),
    receivedNs: new Float64Array(RECEIPT_PACKETS_MAX),
    /** 1 once a copy of this packet was on the wire. */
    sent: new Uint8Array(RECEIPT_PACKETS_MAX),
  };
}

/** Room for a fixed number of receipts; each takes about 150 bytes, and 54 for each copy. */
export class ReceiptStore {
  readonly rows: ReturnType<typeof createRows>;
  readonly copies: ReturnType<typeof createCopies>;
  readonly packets = createPackets();

  readonly #rowsMax: number;
  readonly #copiesMax: number;
  readonly #signatures: Uint8Array;
  readonly #buckets: Int32Array;
  readonly #bucketShift: number;
  readonly #seed = randomInt(1, 2 ** 31) | 1;
  /** The next row of the same bucket. */
  readonly #chain: Int32Array;
  #copiesTouched = 0;
  #freeCopy = NONE;
  /** Sequence of the oldest receipt, and of the one that comes next. */
  #oldest = 0;
  #next = 0;

  constructor(rowsMax: number) {
    const bucketBits = Math.ceil(Math.log2(rowsMax + 1));
    this.#rowsMax = rowsMax;
    this.#copiesMax = rowsMax * RECEIPT_COPIES_MEAN;
    this.#signatures = new Uint8Array(rowsMax * SIGNATURE_BYTES);
    this.#buckets = new Int32Array(2 ** bucketBits).fill(NONE);
    this.#bucketShift = 32 - bucketBits;
    this.#chain = new Int32Array(rowsMax);
    this.rows = createRows(rowsMax);
    this.copies = createCopies(this.#copiesMax);
  }

  get count(): number {
    return this.#next - this.#oldest;
  }

  get isFull(): boolean {
    return this.count === this.#rowsMax;
  }

  /** Whether the next copy finds no place until a receipt goes. */
  get isFullOfCopies(): boolean {
    return this.#freeCopy === NONE && this.#copiesTouched === this.#copiesMax;
  }

  /** The row of the oldest receipt; there must be one. */
  get oldestRow(): number {
    return this.#oldest % this.#rowsMax;
  }

  /** The row of the 64 bytes at `offset`, or NONE. */
  find(bytes: Uint8Array, offset: number): number {
    let row = this.#buckets[this.#bucketOf(bytes, offset)] ?? NONE;
    while (row !== NONE && !this.#isSignature(row, bytes, offset)) row = this.#chain[row] ?? NONE;
    return row;
  }

  /** A new row for the signature at `offset`, which must have none; the store must not be full. */
  open(bytes: Uint8Array, offset: number): number {
    const { rows } = this;
    const row = this.#next % this.#rowsMax;
    this.#next += 1;
    const start = row * SIGNATURE_BYTES;
    for (let at = 0; at < SIGNATURE_BYTES; at += 1) {
      this.#signatures[start + at] = bytes[offset + at] ?? 0;
    }
    const bucket = this.#bucketOf(bytes, offset);
    this.#chain[row] = this.#buckets[bucket] ?? NONE;
    this.#buckets[bucket] = row;
    rows.submissions[row] = 0;
    rows.firstCopy[row] = NONE;
    rows.lastCopy[row] = NONE;
    rows.copyCount[row] = 0;
    rows.copiesLeftOut[row] = 0;
    for (let owner = 0; owner < RECEIPT_OWNERS_MAX; owner += 1) {
      rows.owners.set(row * RECEIPT_OWNERS_MAX + owner, "");
    }
    return row;
  }

  /** Lets the oldest receipt go; there must be one. */
  evict(): void {
    this.#release(this.oldestRow);
    this.#oldest += 1;
  }

  /** Takes back the receipt that was opened last, if it is this packet's alone; else nothing. */
  takeBack(packetId: number): boolean {
    const place = this.placeOfPacket(packetId);
    if (place === NONE || this.packets.sequence[place] !== this.#next - 1) return false;
    const row = this.rowOfPlace(place);
    if (this.rows.submissions[row] !== 1) return false;
    this.#release(row);
    this.packets.id[place] = NONE;
    this.#next -= 1;
    return true;
  }

  /** A new copy at the end of the row's list, or NONE where the row or the store has no place. */
  addCopy(row: number): number {
    const { rows, copies } = this;
    const count = rows.copyCount[row] ?? 0;
    const copy = count < RECEIPT_COPIES_MAX ? this.#takeCopy() : NONE;
    if (copy === NONE) {
      rows.copiesLeftOut[row] = Math.min((rows.copiesLeftOut[row] ?? 0) + 1, 0xffff);
      return NONE;
    }
    copies.next[copy] = NONE;
    const last = rows.lastCopy[row] ?? NONE;
    if (last === NONE) rows.firstCopy[row] = copy;
    else copies.next[last] = copy;
    rows.lastCopy[row] = copy;
    rows.copyCount[row] = count + 1;
    return copy;
  }

  /** Remembers which receipt a packet's outcomes belong to. */
  bindPacket(packetId: number, receivedNs: number, row: number): void {
    const { packets } = this;
    const place = packetId % RECEIPT_PACKETS_MAX;
    packets.id[place] = packetId;
    packets.sequence[place] = this.#sequenceOf(row);
    packets.receivedNs[place] = receivedNs;
    packets.sent[place] = 0;
  }

  /** The packet's place in `packets`, or NONE when it is not known (any more). */
  placeOfPacket(packetId: number): number {
    const { packets } = this;
    const place = packetId % RECEIPT_PACKETS_MAX;
    if (packets.id[place] !== packetId) return NONE;
    return (packets.sequence[place] ?? NONE) < this.#oldest ? NONE : place;
  }

  /** The receipt of a packet's place. */
  rowOfPlace(place: number): number {
    return (this.packets.sequence[place] ?? 0) % this.#rowsMax;
  }

  #bucketOf(bytes: Uint8Array, offset: number): number {
    let hash = this.#seed;
    for (let at = offset; at < offset + 8; at += 1) {
      hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
    }
    hash ^= hash >>> 15;
    return Math.imul(hash, this.#seed) >>> this.#bucketShift;
  }

  #isSignature(row: number, bytes: Uint8Array, offset: number): boolean {
    const start = row * SIGNATURE_BYTES;
    for (let at = 0; at < SIGNATURE_BYTES; at += 1) {
      if (this.#signatures[start + at] !== bytes[offset + at]) return false;
    }
    return true;
  }

  /** Takes the row out of its bucket and gives its copies back. */
  #release(row: number): void {
    this.#unlink(row);
    const first = this.rows.firstCopy[row] ?? NONE;
    if (first === NONE) return;
    this.copies.next[this.rows.lastCopy[row] ?? NONE] = this.#freeCopy;
    this.#freeCopy = first;
  }

  #unlink(row: number): void {
    const bucket = this.#bucketOf(this.#signatures, row * SIGNATURE_BYTES);
    const after = this.#chain[row] ?? NONE;
    let before = this.#buckets[bucket] ?? NONE;
    if (before === row) {
      this.#buckets[bucket] = after;
      return;
    }
    while ((this.#chain[before] ?? NONE) !== row) before = this.#chain[before] ?? NONE;
    this.#chain[before] = after;
  }

  #takeCopy(): number {
    if (this.#freeCopy !== NONE) {
      const copy = this.#freeCopy;
      this.#freeCopy = this.copies.next[copy] ?? NONE;
      return copy;
    }
    if (this.#copiesTouched === this.#copiesMax) return NONE;
    this.#copiesTouched += 1;
    return this.#copiesTouched - 1;
  }

  /** The row's own number in the order of opening; the row must be live. */
  #sequenceOf(row: number): number {
    const turn = this.#oldest - (this.#oldest % this.#rowsMax) + row;
    return turn < this.#oldest ? turn + this.#rowsMax : turn;
  }
}
