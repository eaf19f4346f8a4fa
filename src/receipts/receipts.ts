/**
 * Receipts: the progress of each accepted transaction, for the accounts that sent it.
 *
 * `open` at acceptance, `record` for each outcome, `processed`, `rolledBack` and `end` for network
 * events; the reader's methods on request. A receipt is kept for a fixed time and while there is
 * room; the oldest is evicted first. A resubmitted transaction joins its receipt, whose times still
 * count from the first submission.
 *
 * Hot path: `open` and `record` allocate nothing; the reader builds the JSON.
 */

import type { Clock, Timer } from "../core/clock.ts";
import { NS_PER_MS } from "../core/clock.ts";
import type { EndReason } from "../core/errors.ts";
import type { Accepted, FinalState, Outcome, Packet, ProcessedEvent } from "../core/flow.ts";
import { createHistogram } from "../runtime/histogram.ts";
import type { ReceiptChanges } from "./changes.ts";
import {
  ACKED,
  DROPPED,
  endReasonNumber,
  FAILED,
  IN_FLIGHT,
  LANDED_AGAIN,
  NONE,
  reasonNumber,
  SENT,
  STATE_ACCEPTED,
  STATE_DROPPED,
  STATE_EXPIRED,
  STATE_LANDED,
  STATE_PROCESSED,
} from "./columns.ts";
import { RECEIPT_SWEEP_MAX } from "./limits.ts";
import { createNetworkChanges, type ReadNetworkChanges } from "./network-changes.ts";
import { createReceiptReader, type ReceiptReader } from "./reader.ts";
import { logOther, recordDelivery, setError, setLanding } from "./states.ts";
import { ReceiptStore } from "./store.ts";
import { type ReceiptSlice, sliceOf, storeSlice } from "./transfer.ts";

const SWEEP_PERIOD_MS = 1000;
/** Maximum value of the resend column. */
const RESEND_MAX = 0xffff;

export interface ReceiptDeps {
  readonly clock: Clock;
  /** The slot in progress at a time, as far as known now; null if unknown. */
  readonly slot: (nowNs: number) => number | null;
  /** The share of an account's recent transactions that landed; absent: 1. */
  readonly landedShareOf?: (account: string) => number;
}

export interface ReceiptOptions {
  readonly keepMs: number;
  readonly entriesMax: number;
}

/** Codes of the final states. */
const END_STATES = {
  landed: STATE_LANDED,
  expired: STATE_EXPIRED,
  dropped: STATE_DROPPED,
} as const satisfies Record<FinalState["kind"], number>;

/** Receipts on their way from a process to the one that replaces it. */
export interface ReceiptTransfer {
  /** Receipts from that sequence on, at most `max`, and where to continue; null: no more. */
  exportFrom(from: number, max: number): ReceiptExport | null;
  /** The receipts of the changes from `from` to before `to`, of at most `max` changes. */
  exportChanges(from: number, to: number, max: number): ReceiptExport;
  /** Stores receipts; `isLogged`: streams are told. */
  import(slice: ReceiptSlice, isLogged: boolean): void;
  readonly log: ReceiptChanges;
  /** Sets what `catchUp` does. */
  useCatchUp(catchUp: () => Promise<void> | null): void;
}

export interface ReceiptExport {
  readonly slice: ReceiptSlice;
  readonly next: number;
}

/** Possible error of a receipt time. */
const WAVER_MS = 1;

export function createReceipts(deps: ReceiptDeps, options: ReceiptOptions): Receipts {
  return new Receipts(deps, options);
}

export class Receipts implements ReceiptReader {
  readonly counters = {
    opened: 0,
    duplicatesMerged: 0,
    evictedExpired: 0,
    evictedCapacity: 0,
    untracked: 0,
  };
  readonly durations = {
    /** Receipt to validation result. */
    decode: createHistogram(),
    /** Receipt to the first delivery on the wire. */
    wire: createHistogram(),
    /** Delivery on the wire to its acknowledgement. */
    ack: createHistogram(),
  };
  readonly find: ReceiptReader["find"];
  readonly ticket: ReceiptReader["ticket"];
  readonly reached: ReceiptReader["reached"];
  readonly list: ReceiptReader["list"];
  readonly readChanges: ReceiptReader["readChanges"];
  readonly eachChange: ReceiptReader["eachChange"];
  readonly changes: ReceiptReader["changes"];
  readonly transfer: ReceiptTransfer;
  readonly networkChanges: ReadNetworkChanges;
  readonly #clock: Clock;
  readonly #slot: (nowNs: number) => number | null;
  readonly #landedShareOf: (account: string) => number;
  readonly #keepNs: number;
  readonly #store: ReceiptStore;
  #catchUp: () => Promise<void> | null = () => null;
  #timer: Timer | null = null;
  /** Time of the most recent receipt. */
  #receivedUnixMs = 0;

  constructor(deps: ReceiptDeps, { keepMs, entriesMax }: ReceiptOptions) {
    const { clock } = deps;
    this.#clock = clock;
    this.#slot = deps.slot;
    this.#landedShareOf = deps.landedShareOf ?? (() => 1);
    this.#keepNs = keepMs * NS_PER_MS;
    this.#store = new ReceiptStore(entriesMax, Math.round(clock.unixMs()).toString(36));
    const reader = createReceiptReader(clock, this.#store, this.#keepNs);
    this.find = reader.find;
    this.ticket = reader.ticket;
    this.reached = reader.reached;
    this.list = reader.list;
    this.readChanges = reader.readChanges;
    this.eachChange = reader.eachChange;
    this.changes = reader.changes;
    this.networkChanges = createNetworkChanges(this.#store);
    this.transfer = transferOf(this.#store, (catchUp) => {
      this.#catchUp = catchUp;
    });
  }

  catchUp(): Promise<void> | null {
    return this.#catchUp();
  }

  /**
   * Opens or joins the receipt of an accepted packet that a leader took; call before its outcomes.
   * `nowNs` is later than `decodedNs` if another thread accepted it.
   */
  open(packet: Packet, accepted: Accepted, decodedNs: number, nowNs = decodedNs): void {
    const store = this.#store;
    const { rows } = store;
    // Evicts two per new one: expired receipts go even if the sweep falls behind.
    this.#evictAged(decodedNs, 2);
    let row = store.find(packet.bytes, accepted.signatureOffset);
    if (row !== NONE && decodedNs - (rows.receivedNs[row] ?? 0) > this.#keepNs) {
      // It has expired behind a backlog, which is evicted now.
      this.#evictAged(decodedNs, store.count);
      row = NONE;
    }
    if (row === NONE) {
      if (store.isFull) this.#evictForRoom();
      row = store.open(packet.bytes, accepted.signatureOffset);
      rows.receivedNs[row] = packet.receivedNs;
      rows.receivedSlot[row] = this.#slot(decodedNs) ?? NONE;
      const ageMs = (nowNs - packet.receivedNs) / NS_PER_MS;
      rows.receivedUnixMs[row] = this.#inOrder(this.#clock.unixMs() - ageMs);
      rows.decodedNs[row] = decodedNs;
      rows.tipLamports[row] = accepted.tipLamports;
      rows.priorityFeeLamports[row] = accepted.priorityFeeLamports;
      const landedShare = this.#landedShareOf(packet.account);
      rows.priorityLamports[row] = Math.round(packet.offeredLamports * landedShare);
      rows.version[row] = accepted.version;
      store.changes.add(store.sequenceOf(row), STATE_ACCEPTED);
      this.counters.opened += 1;
    } else {
      this.counters.duplicatesMerged += 1;
      rows.imported[row] = 0;
      this.#reopen(row);
      logOther(store, row);
    }
    addSubmission(store, row, packet.account);
    store.bindPacket(packet.id, packet.receivedNs, row);
    this.durations.decode.record(decodedNs - packet.receivedNs);
  }

  /** The wall clock has millisecond resolution, so times derived from it jitter. */
  #inOrder(unixMs: number): number {
    const isWavering = unixMs < this.#receivedUnixMs && unixMs > this.#receivedUnixMs - WAVER_MS;
    if (!isWavering) this.#receivedUnixMs = unixMs;
    return this.#receivedUnixMs;
  }

  /**
   * Adds the submitter of a duplicate, which is not sent again, to the receipt of the signature at
   * `offset`; returns false without effect if there is none.
   */
  addSubmitter(bytes: Uint8Array, offset: number, account: string): boolean {
    const row = this.#store.find(bytes, offset);
    if (row === NONE) return false;
    addSubmission(this.#store, row, account);
    logOther(this.#store, row);
    this.counters.duplicatesMerged += 1;
    return true;
  }

  /** Processes one delivery's event. */
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
      this.#addDelivery(row, outcome, SENT);
    } else if (outcome.kind === "dropped") {
      // A copy that never left would take the place of those that did.
      if (outcome.resend > 0) return;
      this.#addDelivery(row, outcome, DROPPED);
    } else {
      this.#endDelivery(row, outcome);
    }
    recordDelivery(this.#store, row, outcome.kind);
  }

  /**
   * A block contains the transaction with this signature (64 bytes), not yet final. Its receipt may
   * be of a later packet than the one that landing tracks: the first one's may have been evicted.
   */
  processed({ slot, slotDelta, error, atNs }: ProcessedEvent, signature: Uint8Array): void {
    const row = this.#store.find(signature, 0);
    if (row === NONE || this.#store.stateOf(row) >= STATE_LANDED) return;
    this.#learnSlot(row, slot, slotDelta);
    setLanding(this.#store, row, STATE_PROCESSED, slot, atNs);
    setError(this.#store, row, error);
  }

  /** The cluster abandoned the block that contained it. */
  rolledBack(signature: Uint8Array, atNs: number): void {
    const row = this.#store.find(signature, 0);
    if (row === NONE || this.#store.rows.landing[row] !== STATE_PROCESSED) return;
    setError(this.#store, row, null);
    setLanding(this.#store, row, IN_FLIGHT, NONE, atNs);
  }

  /** Sets the transaction's final state. No later event reverts a landing. */
  end(state: FinalState, signature: Uint8Array): void {
    const { kind, slot, slotDelta, error, reason, atNs } = state;
    const row = this.#store.find(signature, 0);
    if (row === NONE) {
      this.counters.untracked += 1;
      return;
    }
    if (this.#store.rows.landing[row] === STATE_LANDED) return;
    this.#store.rows.endReason[row] = endReasonNumber(this.#reasonFor(row, reason));
    this.#learnSlot(row, slot, slotDelta);
    // The network's error of the last block that contained it is kept with that block.
    const isHeld = kind === "landed" || slot !== 0;
    if (kind === "landed" || !isHeld) setError(this.#store, row, error);
    setLanding(this.#store, row, END_STATES[kind], isHeld ? slot : NONE, atNs);
  }

  /** What was not sent may have been sent by an earlier submission that landing tracks no more. */
  #reasonFor(row: number, reason: EndReason | null): EndReason | null {
    const wasSent = this.#store.rows.deliveryState[row] !== STATE_ACCEPTED;
    return reason === "never_sent" && wasSent ? "tracking_ended" : reason;
  }

  /** Current number of receipts. */
  count(): number {
    return this.#store.count;
  }

  /** Maximum size in bytes; fixed, except for texts of leaders, accounts and errors. */
  get bytes(): number {
    return this.#store.bytes;
  }

  /** Evicts expired receipts, a bounded number per call. */
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

  #addDelivery(row: number, outcome: Outcome, state: number): void {
    const store = this.#store;
    const { deliveries } = store;
    // Delivery capacity runs out before receipt capacity only if transactions have many deliveries.
    while (store.isFullOfDeliveries && store.oldestRow !== row) this.#evictForRoom();
    const delivery = store.addDelivery(row);
    if (delivery === NONE) return;
    deliveries.packetId[delivery] = outcome.packetId;
    deliveries.slot[delivery] = outcome.slot;
    deliveries.leader[delivery] = store.numberOfLeader(outcome.identity, outcome.address);
    deliveries.connectionAgeMs[delivery] = outcome.connectionAgeMs;
    deliveries.resend[delivery] = Math.min(outcome.resend, RESEND_MAX);
    deliveries.sentNs[delivery] = outcome.atNs;
    deliveries.endedNs[delivery] = outcome.atNs;
    setState(store, delivery, outcome, state);
  }

  #endDelivery(row: number, outcome: Outcome): void {
    const { rows, deliveries } = this.#store;
    const delivery = sentDelivery(this.#store, row, outcome);
    if (delivery === NONE) {
      // A delivery without room in its receipt was counted there.
      if (rows.deliveriesOmitted[row] === 0) this.counters.untracked += 1;
      return;
    }
    const acked = outcome.kind === "acked";
    if (acked) this.durations.ack.record(outcome.atNs - (deliveries.sentNs[delivery] ?? 0));
    deliveries.endedNs[delivery] = outcome.atNs;
    setState(this.#store, delivery, outcome, acked ? ACKED : FAILED);
  }

  /**
   * A transaction that ended without landing and is accepted again is in flight again. One that has
   * landed changes no more, which whoever waits for its end from now on must learn.
   */
  #reopen(row: number): void {
    const { rows, changes } = this.#store;
    const landing = rows.landing[row] ?? IN_FLIGHT;
    if (landing === STATE_LANDED) changes.add(this.#store.sequenceOf(row), LANDED_AGAIN);
    if (landing !== STATE_EXPIRED && landing !== STATE_DROPPED) return;
    setError(this.#store, row, null);
    setLanding(this.#store, row, IN_FLIGHT, NONE, rows.landingNs[row] ?? 0);
  }

  /**
   * If the slot at receipt was unknown here, the landing can supply it; if its estimate was ahead
   * of the cluster, later announcements correct it.
   */
  #learnSlot(row: number, slot: number, slotDelta: number | null): void {
    const { rows } = this.#store;
    const estimated = rows.receivedSlot[row] ?? NONE;
    if (estimated !== NONE) {
      const shown = this.#slot(rows.decodedNs[row] ?? 0) ?? estimated;
      rows.receivedSlot[row] = Math.min(estimated, shown);
    } else if (slotDelta !== null) rows.receivedSlot[row] = slot - slotDelta;
  }

  #evictForRoom(): void {
    this.#store.evict();
    this.counters.evictedCapacity += 1;
  }

  #evictAged(nowNs: number, max: number): void {
    const store = this.#store;
    for (let count = 0; count < max && store.count > 0; count += 1) {
      if (nowNs - (store.rows.receivedNs[store.oldestRow] ?? 0) <= this.#keepNs) return;
      store.evict();
      this.counters.evictedExpired += 1;
    }
  }
}

function transferOf(
  store: ReceiptStore,
  useCatchUp: ReceiptTransfer["useCatchUp"],
): ReceiptTransfer {
  return {
    log: store.changes,
    useCatchUp,
    import: (slice, isLogged) => storeSlice(store, slice, isLogged),
    exportFrom(from, max) {
      const { oldest, next } = store.sequences;
      const first = Math.max(from, oldest);
      const end = Math.min(next, first + max);
      if (first >= end) return null;
      const rows: number[] = [];
      for (let at = first; at < end; at += 1) rows.push(store.rowOfSequence(at));
      return { slice: sliceOf(store, rows), next: end };
    },
    exportChanges(from, to, max) {
      const { changes } = store;
      const first = Math.max(from, changes.first);
      const end = Math.max(first, Math.min(to, changes.next, first + max));
      /** Each row, and whether its state changed. */
      const rows = new Map<number, boolean>();
      for (let number = first; number < end; number += 1) {
        const row = store.rowOfSequence(changes.sequenceOf(number));
        if (row === NONE) continue;
        rows.set(row, changes.stateOf(number) < LANDED_AGAIN || rows.get(row) === true);
      }
      const stateChanged = [...rows.values()];
      return { slice: { ...sliceOf(store, [...rows.keys()]), stateChanged }, next: end };
    },
  };
}

function setState(store: ReceiptStore, delivery: number, outcome: Outcome, state: number): void {
  store.deliveries.state[delivery] = state;
  store.deliveries.reason[delivery] = reasonNumber(outcome.reason);
  store.deliveries.rttUs[delivery] = outcome.rttUs;
}

function addSubmission(store: ReceiptStore, row: number, account: string): void {
  store.rows.submissions[row] = Math.min((store.rows.submissions[row] ?? 0) + 1, 0xffff);
  store.submitters.add(row, account);
}

/** The delivery of that send of the packet to that leader, unless it has ended. */
function sentDelivery(store: ReceiptStore, row: number, outcome: Outcome): number {
  const { rows, deliveries } = store;
  const leader = store.numberOfLeader(outcome.identity, outcome.address);
  const packetId = outcome.packetId >>> 0;
  const resend = Math.min(outcome.resend, RESEND_MAX);
  let delivery = rows.firstDelivery[row] ?? NONE;
  for (; delivery !== NONE; delivery = deliveries.next[delivery] ?? NONE) {
    if (deliveries.state[delivery] !== SENT || deliveries.packetId[delivery] !== packetId) continue;
    if (deliveries.leader[delivery] === leader && deliveries.resend[delivery] === resend)
      return delivery;
  }
  return NONE;
}
