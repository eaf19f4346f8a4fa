/**
 * Receipts: what became of each accepted transaction, for the accounts that sent it.
 *
 * `open` at acceptance, `record` for each outcome, `find` when somebody asks. A receipt is kept for
 * a fixed time and while there is room; the oldest goes first. A transaction that is submitted
 * again joins its receipt, whose times go on counting from the first submission. Nothing here
 * says whether a transaction landed: a leader's acknowledgement is not an inclusion.
 *
 * Hot path: `open` and `record` allocate nothing; the JSON is made in `find`.
 */

import type { Clock, Timer } from "../core/clock.ts";
import { NS_PER_MS } from "../core/clock.ts";
import { decodeBase58 } from "../core/encoding.ts";
import type { Accepted, Outcome, Packet } from "../core/flow.ts";
import { createHistogram, type Histogram } from "../core/histogram.ts";
import { RECEIPT_OWNERS_MAX, RECEIPT_SWEEP_MAX } from "../core/limits.ts";
import { ACKED, DROPPED, FAILED, NONE, ReceiptStore, reasonNumber, SENT } from "./receipt-store.ts";
import { type Receipt, receiptOf } from "./receipt-view.ts";

const SIGNATURE_BYTES = 64;
const SWEEP_PERIOD_MS = 1000;

export interface ReceiptDeps {
  readonly clock: Clock;
}

export interface ReceiptOptions {
  readonly keepMs: number;
  readonly entriesMax: number;
}

export interface Receipts {
  readonly counters: {
    opened: number;
    joined: number;
    evictedAge: number;
    evictedRoom: number;
    /** Opened for a packet that went nowhere. */
    abandoned: number;
    untracked: number;
  };
  readonly durations: {
    /** Receipt to verdict. */
    readonly decode: Histogram;
    /** Receipt to the first copy on the wire. */
    readonly wire: Histogram;
    /** A copy on the wire to its acknowledgement. */
    readonly ack: Histogram;
  };
  /** Opens or joins the receipt of an accepted packet; call it before the packet is sent. */
  open(packet: Packet, accepted: Accepted, decodedNs: number): void;
  /**
   * Adds a repetition, which is not sent again, to the receipt of the signature at `offset`; does
   * nothing when there is none.
   */
  share(bytes: Uint8Array, offset: number, account: string): void;
  /**
   * Takes back what `open` did for a packet that no leader could be sent, as the client is told.
   * A receipt that others joined stays.
   */
  abandon(packetId: number): void;
  /** Takes one copy's news. */
  record(outcome: Outcome): void;
  /** The receipt for an account that sent it, null for anybody else and when there is none. */
  find(signature: string, account: string): Receipt | null;
  /** Receipts kept now. */
  count(): number;
  /** Lets go of what is too old, a bounded number a call. */
  sweep(): void;
  start(): void;
  stop(): void;
}

export function createReceipts(deps: ReceiptDeps, options: ReceiptOptions): Receipts {
  return new ReceiptBook(deps, options);
}

class ReceiptBook implements Receipts {
  readonly counters = {
    opened: 0,
    joined: 0,
    evictedAge: 0,
    evictedRoom: 0,
    abandoned: 0,
    untracked: 0,
  };
  readonly durations = {
    decode: createHistogram(),
    wire: createHistogram(),
    ack: createHistogram(),
  };
  readonly #clock: Clock;
  readonly #keepNs: number;
  readonly #store: ReceiptStore;
  #timer: Timer | null = null;

  constructor({ clock }: ReceiptDeps, { keepMs, entriesMax }: ReceiptOptions) {
    this.#clock = clock;
    this.#keepNs = keepMs * NS_PER_MS;
    this.#store = new ReceiptStore(entriesMax);
  }

  open(packet: Packet, accepted: Accepted, decodedNs: number): void {
    const store = this.#store;
    const { rows } = store;
    // Two out for one in: what is too old goes, even where the sweep cannot keep up.
    this.#evictAged(decodedNs, 2);
    let row = store.find(packet.bytes, accepted.signatureOffset);
    if (row !== NONE && decodedNs - (rows.receivedNs[row] ?? 0) > this.#keepNs) {
      // Its time is over but a backlog stands before it, which goes now.
      this.#evictAged(decodedNs, store.count);
      row = NONE;
    }
    if (row === NONE) {
      if (store.isFull) this.#evictForRoom();
      row = store.open(packet.bytes, accepted.signatureOffset);
      rows.receivedNs[row] = packet.receivedNs;
      const ageMs = (this.#clock.nowNs() - packet.receivedNs) / NS_PER_MS;
      rows.receivedUnixMs[row] = this.#clock.unixMs() - ageMs;
      rows.decodedNs[row] = decodedNs;
      rows.tipLamports[row] = accepted.tipLamports;
      rows.priorityFeeLamports[row] = accepted.priorityFeeLamports;
      rows.version[row] = accepted.version;
      this.counters.opened += 1;
    } else {
      this.counters.joined += 1;
    }
    addSubmission(store, row, packet.account);
    store.bindPacket(packet.id, packet.receivedNs, row);
    this.durations.decode.record(decodedNs - packet.receivedNs);
  }

  share(bytes: Uint8Array, offset: number, account: string): void {
    const row = this.#store.find(bytes, offset);
    if (row === NONE) return;
    addSubmission(this.#store, row, account);
    this.counters.joined += 1;
  }

  abandon(packetId: number): void {
    if (this.#store.takeBack(packetId)) this.counters.abandoned += 1;
  }

  record(outcome: Outcome): void {
    const { packets } = this.#store;
    const place = this.#store.placeOfPacket(outcome.packetId);
    if (place === NONE) {
      this.counters.untracked += 1;
      return;
    }
    const row = this.#store.rowOfPlace(place);
    if (outcome.kind === "sent") {
      if (packets.sent[place] === 0) {
        packets.sent[place] = 1;
        this.durations.wire.record(outcome.atNs - (packets.receivedNs[place] ?? 0));
      }
      this.#addCopy(row, outcome, SENT);
    } else if (outcome.kind === "dropped") {
      this.#addCopy(row, outcome, DROPPED);
    } else {
      this.#endCopy(row, outcome);
    }
  }

  find(signature: string, account: string): Receipt | null {
    const bytes = decodeBase58(signature, SIGNATURE_BYTES);
    if (bytes === null || bytes.length !== SIGNATURE_BYTES) return null;
    const row = this.#store.find(bytes, 0);
    if (row === NONE || !hasOwner(this.#store, row, account)) return null;
    const ageNs = this.#clock.nowNs() - (this.#store.rows.receivedNs[row] ?? 0);
    if (ageNs > this.#keepNs) return null;
    return receiptOf(this.#store, row, signature, this.#store.rows.receivedUnixMs[row] ?? 0);
  }

  count(): number {
    return this.#store.count;
  }

  sweep(): void {
    this.#evictAged(this.#clock.nowNs(), RECEIPT_SWEEP_MAX);
  }

  start(): void {
    this.#timer ??= this.#clock.every(SWEEP_PERIOD_MS, () => this.sweep());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #addCopy(row: number, outcome: Outcome, state: number): void {
    const store = this.#store;
    const { copies } = store;
    // Room for copies runs out before room for receipts only where many copies go out each.
    while (store.isFullOfCopies && store.oldestRow !== row) this.#evictForRoom();
    const copy = store.addCopy(row);
    if (copy === NONE) return;
    copies.packetId[copy] = outcome.packetId;
    copies.slot[copy] = outcome.slot;
    copies.identity.set(copy, outcome.identity);
    copies.address.set(copy, outcome.address);
    copies.sentNs[copy] = outcome.atNs;
    copies.endedNs[copy] = outcome.atNs;
    setState(store, copy, outcome, state);
  }

  #endCopy(row: number, outcome: Outcome): void {
    const { rows, copies } = this.#store;
    const copy = sentCopy(this.#store, row, outcome);
    if (copy === NONE) {
      // A copy that found no place in its receipt was counted there.
      if (rows.copiesLeftOut[row] === 0) this.counters.untracked += 1;
      return;
    }
    const acked = outcome.kind === "acked";
    if (acked) this.durations.ack.record(outcome.atNs - (copies.sentNs[copy] ?? 0));
    copies.endedNs[copy] = outcome.atNs;
    setState(this.#store, copy, outcome, acked ? ACKED : FAILED);
  }

  #evictForRoom(): void {
    this.#store.evict();
    this.counters.evictedRoom += 1;
  }

  #evictAged(nowNs: number, most: number): void {
    const store = this.#store;
    for (let count = 0; count < most && store.count > 0; count += 1) {
      if (nowNs - (store.rows.receivedNs[store.oldestRow] ?? 0) <= this.#keepNs) return;
      store.evict();
      this.counters.evictedAge += 1;
    }
  }
}

function setState(store: ReceiptStore, copy: number, outcome: Outcome, state: number): void {
  store.copies.state[copy] = state;
  store.copies.reason[copy] = reasonNumber(outcome.reason);
  store.copies.rttUs[copy] = outcome.rttUs;
}

function addSubmission(store: ReceiptStore, row: number, account: string): void {
  store.rows.submissions[row] = Math.min((store.rows.submissions[row] ?? 0) + 1, 0xffff);
  const start = row * RECEIPT_OWNERS_MAX;
  for (let index = start; index < start + RECEIPT_OWNERS_MAX; index += 1) {
    const owner = store.rows.owners.at(index);
    if (owner === account) return;
    if (owner !== "") continue;
    store.rows.owners.set(index, account);
    return;
  }
}

function hasOwner(store: ReceiptStore, row: number, account: string): boolean {
  const start = row * RECEIPT_OWNERS_MAX;
  for (let index = start; index < start + RECEIPT_OWNERS_MAX; index += 1) {
    if (account !== "" && store.rows.owners.at(index) === account) return true;
  }
  return false;
}

/** The oldest copy of that packet to that leader that has not ended. */
function sentCopy({ rows, copies }: ReceiptStore, row: number, outcome: Outcome): number {
  let copy = rows.firstCopy[row] ?? NONE;
  for (; copy !== NONE; copy = copies.next[copy] ?? NONE) {
    if (copies.state[copy] !== SENT || copies.packetId[copy] !== outcome.packetId) continue;
    if (copies.address.at(copy) !== outcome.address) continue;
    if (copies.identity.at(copy) === outcome.identity) return copy;
  }
  return NONE;
}
