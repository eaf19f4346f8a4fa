/**
 * The storage of receipts: numeric columns in typed arrays, so that a million receipts cost the
 * garbage collector nothing and the limit fixes the memory.
 *
 *  sequence 0 1 2 …  ─▶ row = sequence mod rowsMax, oldest evicted first
 *  signature ─ seeded hash ─▶ bucket ─▶ row ─▶ next row of the bucket
 *  row ─▶ first delivery ─▶ next delivery; from a free list, returned to it on eviction
 *  packet id mod places ─▶ sequence; a packet whose place was reused is forgotten
 *  account ─▶ its receipts, newest first (submitters.ts)
 *
 * Memory is touched on first use. The seed prevents senders from filling one bucket. The hash
 * covers the signature's second half: senders can make the first half constant.
 *
 * Hot path: `open`, `placeOfPacket` and `addDelivery` run for each transaction and delivery.
 */

import { randomInt } from "node:crypto";
import { ReceiptChanges } from "./changes.ts";
import {
  bytesOf,
  createDeliveries,
  createPackets,
  createRows,
  IN_FLIGHT,
  NONE,
  STATE_ACCEPTED,
} from "./columns.ts";
import { NO_ERROR, ReceiptErrors } from "./errors.ts";
import { ReceiptLeaders } from "./leaders.ts";
import {
  RECEIPT_CHANGES_MEAN,
  RECEIPT_DELIVERIES_MAX,
  RECEIPT_DELIVERIES_MEAN,
  RECEIPT_PACKETS_MIN,
} from "./limits.ts";
import { ReceiptSubmitters } from "./submitters.ts";

const SIGNATURE_BYTES = 64;
/** Offset of the second half. */
const SCALAR_AT = 32;

/** Storage for a fixed number of receipts; `bytes` is its size. */
export class ReceiptStore {
  readonly rows: ReturnType<typeof createRows>;
  readonly deliveries: ReturnType<typeof createDeliveries>;
  readonly packets: ReturnType<typeof createPackets>;
  readonly submitters: ReceiptSubmitters;
  readonly leaders = new ReceiptLeaders();
  readonly errors = new ReceiptErrors();
  readonly changes: ReceiptChanges;

  readonly #rowsMax: number;
  readonly #deliveriesMax: number;
  readonly #packetsMax: number;
  readonly #signatures: Uint8Array;
  readonly #buckets: Int32Array;
  readonly #bucketShift: number;
  readonly #seed = randomInt(1, 2 ** 31) | 1;
  /** The next row of the same bucket. */
  readonly #chain: Int32Array;
  #deliveriesTouched = 0;
  #freeDelivery = NONE;
  /** Sequence of the oldest receipt, and of the next one. */
  #oldest = 0;
  #next = 0;

  constructor(rowsMax: number, epoch?: string) {
    const bucketBits = Math.ceil(Math.log2(rowsMax + 1));
    this.#rowsMax = rowsMax;
    this.#deliveriesMax = rowsMax * RECEIPT_DELIVERIES_MEAN;
    this.#signatures = new Uint8Array(rowsMax * SIGNATURE_BYTES);
    this.#buckets = new Int32Array(2 ** bucketBits).fill(NONE);
    this.#bucketShift = 32 - bucketBits;
    this.#chain = new Int32Array(rowsMax);
    this.rows = createRows(rowsMax);
    this.deliveries = createDeliveries(this.#deliveriesMax);
    this.#packetsMax = Math.max(RECEIPT_PACKETS_MIN, rowsMax);
    this.packets = createPackets(this.#packetsMax);
    this.submitters = new ReceiptSubmitters(rowsMax);
    this.changes = new ReceiptChanges(rowsMax * RECEIPT_CHANGES_MEAN, epoch);
  }

  /** Total size in bytes, excluding texts: leaders, accounts, the network's errors. */
  get bytes(): number {
    const own = this.#signatures.byteLength + this.#buckets.byteLength + this.#chain.byteLength;
    const columns = bytesOf(this.rows) + bytesOf(this.deliveries) + bytesOf(this.packets);
    return own + columns + this.submitters.bytes + this.changes.bytes;
  }

  get count(): number {
    return this.#next - this.#oldest;
  }

  get isFull(): boolean {
    return this.count === this.#rowsMax;
  }

  /** Whether no delivery can be added until a receipt is evicted. */
  get isFullOfDeliveries(): boolean {
    return this.#freeDelivery === NONE && this.#deliveriesTouched === this.#deliveriesMax;
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
    rows.firstDelivery[row] = NONE;
    rows.lastDelivery[row] = NONE;
    rows.deliveryCount[row] = 0;
    rows.deliveriesOmitted[row] = 0;
    rows.deliveriesOpen[row] = 0;
    rows.deliveryState[row] = STATE_ACCEPTED;
    rows.landing[row] = IN_FLIGHT;
    rows.landingNs[row] = 0;
    rows.landingSlot[row] = NONE;
    rows.endReason[row] = 0;
    rows.error[row] = NO_ERROR;
    rows.imported[row] = 0;
    return row;
  }

  /** Evicts the oldest receipt; there must be one. */
  evict(): void {
    this.#release(this.oldestRow);
    this.#oldest += 1;
  }

  /** A new delivery at the end of the row's list, or NONE if the row or the store is full. */
  addDelivery(row: number): number {
    const { rows, deliveries } = this;
    const count = rows.deliveryCount[row] ?? 0;
    const delivery = count < RECEIPT_DELIVERIES_MAX ? this.#allocateDelivery() : NONE;
    if (delivery === NONE) {
      rows.deliveriesOmitted[row] = Math.min((rows.deliveriesOmitted[row] ?? 0) + 1, 0xffff);
      return NONE;
    }
    deliveries.next[delivery] = NONE;
    const last = rows.lastDelivery[row] ?? NONE;
    if (last === NONE) rows.firstDelivery[row] = delivery;
    else deliveries.next[last] = delivery;
    rows.lastDelivery[row] = delivery;
    rows.deliveryCount[row] = count + 1;
    return delivery;
  }

  /** Removes the row's deliveries. */
  clearDeliveries(row: number): void {
    const { rows, deliveries } = this;
    const first = rows.firstDelivery[row] ?? NONE;
    if (first === NONE) return;
    deliveries.next[rows.lastDelivery[row] ?? NONE] = this.#freeDelivery;
    this.#freeDelivery = first;
    rows.firstDelivery[row] = NONE;
    rows.lastDelivery[row] = NONE;
    rows.deliveryCount[row] = 0;
  }

  /** Sequence of the oldest receipt, and of the next one. */
  get sequences(): { readonly oldest: number; readonly next: number } {
    return { oldest: this.#oldest, next: this.#next };
  }

  /** The number of a leader, for the deliveries' column `leader`. */
  numberOfLeader(identity: string, address: string): number {
    return this.leaders.numberOf(identity, address, this.deliveries.leader);
  }

  /** Maps a packet to the receipt of its outcomes. */
  bindPacket(packetId: number, receivedNs: number, row: number): void {
    const { packets } = this;
    const place = packetId % this.#packetsMax;
    packets.id[place] = packetId;
    packets.sequence[place] = this.sequenceOf(row);
    packets.receivedNs[place] = receivedNs;
    packets.sent[place] = 0;
  }

  /** The packet's place in `packets`, or NONE if it is not known or no longer known. */
  placeOfPacket(packetId: number): number {
    const { packets } = this;
    const place = packetId % this.#packetsMax;
    if (packets.id[place] !== packetId) return NONE;
    return (packets.sequence[place] ?? NONE) < this.#oldest ? NONE : place;
  }

  /** The row's sequence number; the row must be live. */
  sequenceOf(row: number): number {
    const turn = this.#oldest - (this.#oldest % this.#rowsMax) + row;
    return turn < this.#oldest ? turn + this.#rowsMax : turn;
  }

  /** The row of a sequence, or NONE after eviction. */
  rowOfSequence(sequence: number): number {
    return sequence < this.#oldest || sequence >= this.#next ? NONE : sequence % this.#rowsMax;
  }

  /** The row's state as a number of RECEIPT_STATES: its landing, else its delivery state. */
  stateOf(row: number): number {
    const landing = this.rows.landing[row] ?? IN_FLIGHT;
    return landing === IN_FLIGHT ? (this.rows.deliveryState[row] ?? STATE_ACCEPTED) : landing;
  }

  /** The row's signature; the view is valid as long as the row. */
  signatureOf(row: number): Uint8Array {
    return this.#signatures.subarray(row * SIGNATURE_BYTES, (row + 1) * SIGNATURE_BYTES);
  }

  /** The receipt of a packet's place. */
  rowOfPlace(place: number): number {
    return (this.packets.sequence[place] ?? 0) % this.#rowsMax;
  }

  #bucketOf(bytes: Uint8Array, offset: number): number {
    let hash = this.#seed;
    for (let at = 0; at < 4; at += 1) {
      hash = Math.imul(hash ^ (bytes[offset + at] ?? 0), 0x01000193);
    }
    for (let at = SCALAR_AT; at < SCALAR_AT + 8; at += 1) {
      hash = Math.imul(hash ^ (bytes[offset + at] ?? 0), 0x01000193);
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

  /** Removes the row from its bucket and its submitters' lists, and frees its deliveries. */
  #release(row: number): void {
    this.#unlink(row);
    this.submitters.release(row);
    this.errors.release(this.rows.error[row] ?? NO_ERROR);
    this.clearDeliveries(row);
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

  #allocateDelivery(): number {
    if (this.#freeDelivery !== NONE) {
      const delivery = this.#freeDelivery;
      this.#freeDelivery = this.deliveries.next[delivery] ?? NONE;
      return delivery;
    }
    if (this.#deliveriesTouched === this.#deliveriesMax) return NONE;
    this.#deliveriesTouched += 1;
    return this.#deliveriesTouched - 1;
  }
}
