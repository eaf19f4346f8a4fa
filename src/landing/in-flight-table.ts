/**
 * The table of transactions in flight: one row each, in typed arrays, with indexes by signature and
 * by packet, a list by age, and the bytes.
 *
 * Bounded by rows and by bytes; at either bound `isFullFor` is true, and the caller ends the oldest
 * first. Row numbers are reused, so a caller that keeps one across a wait must keep the packet's id
 * too and check `holds`.
 *
 * Hot path: `open`, `findPacket` and `findSignature`. They allocate no strings and no closures.
 */

import { randomInt } from "node:crypto";
import type { Accepted, Packet } from "../core/flow.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../core/limits.ts";
import { ByteStore, NONE } from "./byte-store.ts";
import { RowIndex } from "./row-index.ts";

const SIGNATURE_BYTES = 64;
const BLOCKHASH_BYTES = 32;
/** An unknown height or slot. */
export const UNKNOWN = -1;
/** `retriesLeft` of a packet whose client set no `maxRetries`. */
const RETRIES_UNLIMITED = 2 ** 31 - 1;

/** Bits of `flags`. */
export const DURABLE = 1;
/** At least one delivery was on the wire. */
export const SENT = 2;
/** A processed block, not confirmed yet, holds it. */
export const PROCESSED = 4;
/** A request for its status is pending. */
export const REQUESTED = 8;
/** The cluster knows its blockhash. */
export const KNOWN = 16;

export class InFlightTable {
  readonly packetId: Float64Array;
  /** `Clock.nowNs` of acceptance, of the newest send, and of the next status request. */
  readonly sinceNs: Float64Array;
  readonly lastSentNs: Float64Array;
  readonly nextPollNs: Float64Array;
  /** The time of its entry in the dedup cache. */
  readonly entryNs: Float64Array;
  /** The packet under which it was last sent again elsewhere; NONE if it was not. */
  readonly mergedId: Float64Array;
  /** The slot in progress at acceptance; UNKNOWN without one. */
  readonly receivedSlot: Float64Array;
  /** The block height known at acceptance; UNKNOWN without one. */
  readonly receivedHeight: Float64Array;
  /** The last height at which its blockhash is valid; UNKNOWN before it is looked up. */
  readonly lastValidHeight: Float64Array;
  /**
   * The slot of the newest response without it that reaches back to the one before; before the
   * first the slot of acceptance, or of its blockhash, once that is known.
   */
  readonly absentSlot: Float64Array;
  /** While PROCESSED: the slot of the block. */
  readonly processedSlot: Float64Array;
  /** While PROCESSED: the id of the block's bank; UNKNOWN without one. */
  readonly processedBank: Float64Array;
  /** When it was seen in that block. */
  readonly processedNs: Float64Array;
  /** The slot in progress when the height first exceeded `lastValidHeight`; UNKNOWN before. */
  readonly expiredSlot: Float64Array;
  /** The slot in which its blockhash is proven unknown to the cluster; UNKNOWN before. */
  readonly unknownSlot: Float64Array;
  readonly retriesLeft: Int32Array;
  /** Number of resends. */
  readonly resends: Uint32Array;
  /** The resend of which a copy left last. */
  readonly countedResend: Uint32Array;
  /** Copies of resends that wait for their leaders. */
  readonly copiesWaiting: Uint16Array;
  /** Number of lookups of its blockhash. */
  readonly lookups: Uint8Array;
  readonly flags: Uint8Array;
  /** Priority fee and tip. */
  readonly offeredLamports: Float64Array;
  /** The tip alone. */
  readonly tipLamports: Float64Array;
  /** The plan of the key that sent it first. */
  readonly plans: string[];
  readonly capacity: number;
  /** Rows in use. */
  count = 0;
  /** Rows at or above this number were never used. */
  rowsUsed = 0;
  readonly #signatures: Buffer;
  /** A word of each signature; most rows of a hash chain that do not match differ in it. */
  readonly #hashes: Int32Array;
  readonly #size: Int32Array;
  readonly #bytes: Int32Array;
  readonly #blockhashOffset: Uint16Array;
  /** The account that sent it first. */
  readonly #accounts: string[];
  readonly #older: Int32Array;
  readonly #newer: Int32Array;
  #oldest = NONE;
  #newest = NONE;
  /** Free rows are chained through `#newer`. */
  #free = NONE;
  readonly #store: ByteStore;
  readonly #bySignature: RowIndex;
  readonly #byPacket: RowIndex;
  readonly #byMerged: RowIndex;
  readonly #scratch = new Uint8Array(V1_TRANSACTION_BYTES_MAX);
  readonly #blockhash = new Uint8Array(BLOCKHASH_BYTES);
  /** Clients choose their signatures, so the hash has a secret seed. */
  readonly #seed = randomInt(2 ** 32);

  constructor(capacity: number, bytesMax: number) {
    this.capacity = capacity;
    const numbers = (): Float64Array => new Float64Array(capacity);
    this.packetId = numbers().fill(NONE);
    this.sinceNs = numbers();
    this.lastSentNs = numbers();
    this.nextPollNs = numbers();
    this.entryNs = numbers();
    this.mergedId = numbers().fill(NONE);
    this.receivedSlot = numbers();
    this.receivedHeight = numbers();
    this.lastValidHeight = numbers();
    this.absentSlot = numbers();
    this.processedSlot = numbers();
    this.processedBank = numbers();
    this.processedNs = numbers();
    this.expiredSlot = numbers();
    this.unknownSlot = numbers();
    this.offeredLamports = numbers();
    this.tipLamports = numbers();
    this.plans = new Array<string>(capacity).fill("");
    this.retriesLeft = new Int32Array(capacity);
    this.resends = new Uint32Array(capacity);
    this.countedResend = new Uint32Array(capacity);
    this.copiesWaiting = new Uint16Array(capacity);
    this.lookups = new Uint8Array(capacity);
    this.flags = new Uint8Array(capacity);
    this.#signatures = Buffer.alloc(capacity * SIGNATURE_BYTES);
    this.#hashes = new Int32Array(capacity);
    this.#size = new Int32Array(capacity);
    this.#bytes = new Int32Array(capacity);
    this.#blockhashOffset = new Uint16Array(capacity);
    this.#accounts = new Array<string>(capacity).fill("");
    this.#older = new Int32Array(capacity);
    this.#newer = new Int32Array(capacity);
    this.#store = new ByteStore(bytesMax);
    this.#bySignature = new RowIndex(capacity);
    this.#byPacket = new RowIndex(capacity);
    this.#byMerged = new RowIndex(capacity);
  }

  get oldest(): number {
    return this.#oldest;
  }

  /** The next younger row, or NONE. */
  newerThan(row: number): number {
    return this.#newer[row] ?? NONE;
  }

  /** Whether a row must end before a transaction of `size` bytes can be opened. */
  isFullFor(size: number): boolean {
    return this.count === this.capacity || !this.#store.hasRoomFor(size);
  }

  /**
   * Opens a row and copies the bytes; the caller has made room, and sets the times, the tip and the
   * plan.
   */
  open(packet: Packet, accepted: Accepted): number {
    const { bytes } = packet;
    const row = this.#takeRow();
    const offset = accepted.signatureOffset;
    // Copied byte by byte: creating a view costs more.
    const start = row * SIGNATURE_BYTES;
    for (let at = 0; at < SIGNATURE_BYTES; at += 1) {
      this.#signatures[start + at] = bytes[offset + at] ?? 0;
    }
    this.#bytes[row] = this.#store.put(bytes);
    this.#size[row] = bytes.length;
    this.#blockhashOffset[row] = accepted.blockhashOffset;
    this.packetId[row] = packet.id;
    this.retriesLeft[row] = retriesOf(packet.maxRetries);
    this.flags[row] = accepted.durableNonce ? DURABLE : 0;
    this.offeredLamports[row] = packet.offeredLamports;
    this.lookups[row] = 0;
    this.resends[row] = 0;
    this.countedResend[row] = 0;
    this.copiesWaiting[row] = 0;
    this.lastValidHeight[row] = UNKNOWN;
    this.expiredSlot[row] = UNKNOWN;
    this.unknownSlot[row] = UNKNOWN;
    this.#accounts[row] = packet.account;
    const hash = this.#hash(bytes, offset);
    this.#hashes[row] = hash;
    this.#bySignature.add(hash, row);
    this.#byPacket.add(packet.id, row);
    return row;
  }

  /** Frees a row. */
  close(row: number): void {
    this.#bySignature.remove(this.#hashes[row] ?? 0, row);
    this.#byPacket.remove(this.packetId[row] ?? NONE, row);
    this.#removeMerged(row);
    this.#store.free(this.#bytes[row] ?? NONE);
    this.packetId[row] = NONE;
    this.flags[row] = 0;
    this.#unlink(row);
    this.#newer[row] = this.#free;
    this.#free = row;
    this.count -= 1;
  }

  /** Whether the row still holds that packet. */
  holds(row: number, packetId: number): boolean {
    return this.packetId[row] === packetId;
  }

  /** The row of a packet, also of one that was merged last with its transaction; or NONE. */
  findPacket(packetId: number): number {
    let row = this.#byPacket.first(packetId);
    while (row !== NONE && this.packetId[row] !== packetId) row = this.#byPacket.after(row);
    if (row !== NONE) return row;
    row = this.#byMerged.first(packetId);
    while (row !== NONE && this.mergedId[row] !== packetId) row = this.#byMerged.after(row);
    return row;
  }

  /** From now on that packet's outcomes are of this row, instead of those of the one before. */
  merge(row: number, packetId: number): void {
    this.#removeMerged(row);
    this.mergedId[row] = packetId;
    this.#byMerged.add(packetId, row);
  }

  /** The row of the signature at `offset`, or NONE. */
  findSignature(bytes: Uint8Array, offset: number): number {
    if (offset < 0 || offset + SIGNATURE_BYTES > bytes.length) return NONE;
    const hash = this.#hash(bytes, offset);
    let row = this.#bySignature.first(hash);
    while (row !== NONE) {
      if (this.#hashes[row] === hash && this.#isSignature(row, bytes, offset)) return row;
      row = this.#bySignature.after(row);
    }
    return NONE;
  }

  /** Raises the remaining resends to those that a repeated submission allows. */
  raiseRetries(row: number, maxRetries: number | null): void {
    this.retriesLeft[row] = Math.max(this.retriesLeft[row] ?? 0, retriesOf(maxRetries));
  }

  /** A copy of a resend waits for its leader. */
  copyWaits(row: number): void {
    this.copiesWaiting[row] = (this.copiesWaiting[row] ?? 0) + 1;
  }

  /** One that waited is on the wire, or was never sent. */
  copyEnded(row: number): void {
    this.copiesWaiting[row] = Math.max(0, (this.copiesWaiting[row] ?? 0) - 1);
  }

  is(row: number, flag: number): boolean {
    return ((this.flags[row] ?? 0) & flag) !== 0;
  }

  raise(row: number, flag: number): void {
    this.flags[row] = (this.flags[row] ?? 0) | flag;
  }

  lower(row: number, flag: number): void {
    this.flags[row] = (this.flags[row] ?? 0) & ~flag;
  }

  accountOf(row: number): string {
    return this.#accounts[row] ?? "";
  }

  /** The transaction's bytes; valid until the next call. */
  bytes(row: number): Uint8Array {
    const size = this.#size[row] ?? 0;
    this.#store.read(this.#bytes[row] ?? NONE, 0, size, this.#scratch);
    return this.#scratch.subarray(0, size);
  }

  /** The recent blockhash or durable nonce; valid until the next call. */
  blockhash(row: number): Uint8Array {
    const offset = this.#blockhashOffset[row] ?? 0;
    this.#store.read(this.#bytes[row] ?? NONE, offset, BLOCKHASH_BYTES, this.#blockhash);
    return this.#blockhash;
  }

  /** The signature; a view that is valid until the row is used again. */
  signature(row: number): Uint8Array {
    const start = row * SIGNATURE_BYTES;
    return this.#signatures.subarray(start, start + SIGNATURE_BYTES);
  }

  /** The signatures of the rows, concatenated. */
  signatures(rows: readonly number[]): Uint8Array {
    const bytes = Buffer.allocUnsafe(rows.length * SIGNATURE_BYTES);
    for (const [index, row] of rows.entries()) {
      const start = row * SIGNATURE_BYTES;
      this.#signatures.copy(bytes, index * SIGNATURE_BYTES, start, start + SIGNATURE_BYTES);
    }
    return bytes;
  }

  /** The free row used last, else the next unused one; it becomes the youngest. */
  #takeRow(): number {
    let row = this.#free;
    if (row === NONE) {
      row = this.rowsUsed;
      this.rowsUsed += 1;
    } else this.#free = this.#newer[row] ?? NONE;
    this.#older[row] = this.#newest;
    this.#newer[row] = NONE;
    if (this.#newest === NONE) this.#oldest = row;
    else this.#newer[this.#newest] = row;
    this.#newest = row;
    this.count += 1;
    return row;
  }

  #removeMerged(row: number): void {
    const packetId = this.mergedId[row] ?? NONE;
    if (packetId === NONE) return;
    this.#byMerged.remove(packetId, row);
    this.mergedId[row] = NONE;
  }

  #unlink(row: number): void {
    const older = this.#older[row] ?? NONE;
    const newer = this.#newer[row] ?? NONE;
    if (older === NONE) this.#oldest = newer;
    else this.#newer[older] = newer;
    if (newer === NONE) this.#newest = older;
    else this.#older[newer] = older;
  }

  #isSignature(row: number, bytes: Uint8Array, offset: number): boolean {
    const [end, start] = [offset + SIGNATURE_BYTES, row * SIGNATURE_BYTES];
    return this.#signatures.compare(bytes, offset, end, start, start + SIGNATURE_BYTES) === 0;
  }

  /** Words of both halves: a signer may use the first half again, but not both. */
  #hash(bytes: Uint8Array, offset: number): number {
    let hash = this.#seed;
    for (let at = offset; at < offset + SIGNATURE_BYTES; at += HASH_STEP) {
      const low = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
      const high = (bytes[at + 2] ?? 0) | ((bytes[at + 3] ?? 0) << 8);
      hash = Math.imul(hash ^ low ^ (high << 16), 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    return hash;
  }
}

/** Four words of sixteen: from each half of the signature two. */
const HASH_STEP = 16;

function retriesOf(maxRetries: number | null): number {
  return Math.min(maxRetries ?? RETRIES_UNLIMITED, RETRIES_UNLIMITED);
}
