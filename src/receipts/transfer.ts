/**
 * Receipts on their way to another process, which replaces this one and may be of another version:
 * numbers in columns that are named, so that a column which only one of the two knows is left out,
 * and reasons by their names.
 */

import { DELIVERY_REASON_NAMES, END_REASON_NAMES } from "../core/errors.ts";
import { NONE, STATE_LANDED } from "./columns.ts";
import { logOther, setError, setLanding } from "./states.ts";
import type { ReceiptStore } from "./store.ts";

/** Some receipts. All arrays but those of names have one element, or one group, for each. */
export interface ReceiptSlice {
  readonly count: number;
  /** 64 bytes each. */
  readonly signatures: Uint8Array;
  readonly columns: readonly string[];
  /** A group for each receipt: one number for each column. */
  readonly numbers: Float64Array;
  /** Who may see it. */
  readonly accounts: readonly (readonly string[])[];
  /** The network's error, JSON text or null. */
  readonly errors: readonly (string | null)[];
  readonly deliveryColumns: readonly string[];
  /** A group for each delivery: the receipt's index, the leader's index, and its columns. */
  readonly deliveries: Float64Array;
  /** Identity and address. */
  readonly leaders: readonly (readonly [string, string])[];
  /** Whether the state of each changed; absent: that of each did. */
  readonly stateChanged?: readonly boolean[];
  /** The names of the reasons' numbers, from 1. */
  readonly deliveryReasons: readonly string[];
  readonly endReasons: readonly string[];
}

const COLUMNS = [
  "receivedNs",
  "receivedUnixMs",
  "receivedSlot",
  "decodedNs",
  "tipLamports",
  "priorityFeeLamports",
  "priorityLamports",
  "version",
  "submissions",
  "deliveriesOmitted",
  "deliveriesOpen",
  "deliveryState",
  "landing",
  "landingNs",
  "landingSlot",
  "endReason",
] as const;

const DELIVERY_COLUMNS = [
  "packetId",
  "slot",
  "sentNs",
  "endedNs",
  "rttUs",
  "connectionAgeMs",
  "resend",
  "state",
  "reason",
] as const;

const SIGNATURE_BYTES = 64;

/** The column `imported`: another process sent the receipt; and streams were told its state. */
const IMPORTED = 1;
const LOGGED = 2;

/** The receipts of these rows. */
export function sliceOf(store: ReceiptStore, rows: readonly number[]): ReceiptSlice {
  const signatures = new Uint8Array(rows.length * SIGNATURE_BYTES);
  const numbers = new Float64Array(rows.length * COLUMNS.length);
  const deliveries: number[] = [];
  const leaders: (readonly [string, string])[] = [];
  const leaderIndex = new Map<number, number>();
  for (const [index, row] of rows.entries()) {
    signatures.set(store.signatureOf(row), index * SIGNATURE_BYTES);
    const at = index * COLUMNS.length;
    for (const [place, name] of COLUMNS.entries()) numbers[at + place] = store.rows[name][row] ?? 0;
    let delivery = store.rows.firstDelivery[row] ?? NONE;
    for (; delivery !== NONE; delivery = store.deliveries.next[delivery] ?? NONE) {
      const leader = store.deliveries.leader[delivery] ?? NONE;
      const known = leaderIndex.get(leader) ?? leaders.length;
      if (known === leaders.length) {
        leaderIndex.set(leader, known);
        leaders.push([store.leaders.identityOf(leader), store.leaders.addressOf(leader)]);
      }
      deliveries.push(index, known);
      for (const name of DELIVERY_COLUMNS) deliveries.push(store.deliveries[name][delivery] ?? 0);
    }
  }
  return {
    count: rows.length,
    ...{ signatures, columns: COLUMNS, numbers, deliveryColumns: DELIVERY_COLUMNS, leaders },
    accounts: rows.map((row) => accountsOf(store, row)),
    errors: rows.map((row) => store.errors.at(store.rows.error[row] ?? 0)),
    deliveries: Float64Array.from(deliveries),
    ...{ deliveryReasons: DELIVERY_REASON_NAMES, endReasons: END_REASON_NAMES },
  };
}

function accountsOf({ submitters }: ReceiptStore, row: number): readonly string[] {
  const accounts: string[] = [];
  for (let place = 0; ; place += 1) {
    const account = submitters.submitterAt(row, place);
    if (account === null) return accounts;
    accounts.push(account);
  }
}

/**
 * Stores the receipts of another process; `isLogged`: as changes of state, for streams. A receipt
 * that this process has for a transaction of its own learns a landing alone.
 */
export function storeSlice(store: ReceiptStore, slice: ReceiptSlice, isLogged: boolean): void {
  const deliveries = deliveriesByReceipt(slice);
  for (let index = 0; index < slice.count; index += 1) {
    const at = index * SIGNATURE_BYTES;
    let row = store.find(slice.signatures, at);
    const isOwn = row !== NONE && store.rows.imported[row] === 0;
    if (row === NONE) {
      if (store.isFull) store.evict();
      row = store.open(slice.signatures, at);
      store.rows.imported[row] = IMPORTED;
    }
    for (const account of slice.accounts[index] ?? []) store.submitters.add(row, account);
    if (isOwn) mergeLanding(store, row, slice, index);
    else {
      const { rows } = store;
      const state = store.stateOf(row);
      fill(store, row, slice, index, deliveries.get(index) ?? []);
      // A slice may hold a newer state than the change it reports, and the next slice repeats it.
      const now = store.stateOf(row);
      const isUntold = (slice.stateChanged?.[index] ?? true) && rows.imported[row] !== LOGGED;
      if (isLogged && (now !== state || isUntold)) {
        store.changes.add(store.sequenceOf(row), now);
        rows.imported[row] = LOGGED;
        continue;
      }
    }
    logOther(store, row);
  }
}

function fill(
  store: ReceiptStore,
  row: number,
  slice: ReceiptSlice,
  index: number,
  deliveries: readonly number[],
): void {
  const { rows } = store;
  const numberAt = reader(slice.columns, slice.numbers, index * slice.columns.length);
  for (const name of COLUMNS) rows[name][row] = numberAt(name);
  rows.endReason[row] = numberOf(END_REASON_NAMES, slice.endReasons, numberAt("endReason"));
  setError(store, row, slice.errors[index] ?? null);
  store.clearDeliveries(row);
  const size = slice.deliveryColumns.length + 2;
  for (const at of deliveries) {
    const delivery = store.addDelivery(row);
    if (delivery === NONE) continue;
    const [identity, address] = slice.leaders[slice.deliveries[at * size + 1] ?? 0] ?? ["", ""];
    const numberIn = reader(slice.deliveryColumns, slice.deliveries, at * size + 2);
    for (const name of DELIVERY_COLUMNS) store.deliveries[name][delivery] = numberIn(name);
    const reason = numberOf(DELIVERY_REASON_NAMES, slice.deliveryReasons, numberIn("reason"));
    store.deliveries.reason[delivery] = reason;
    store.deliveries.leader[delivery] = store.numberOfLeader(identity, address);
  }
}

function mergeLanding(store: ReceiptStore, row: number, slice: ReceiptSlice, index: number): void {
  const numberAt = reader(slice.columns, slice.numbers, index * slice.columns.length);
  if (numberAt("landing") !== STATE_LANDED || store.rows.landing[row] === STATE_LANDED) return;
  setError(store, row, slice.errors[index] ?? null);
  setLanding(store, row, STATE_LANDED, numberAt("landingSlot"), numberAt("landingNs"));
}

/** The indexes of each receipt's deliveries. */
function deliveriesByReceipt({ deliveries, deliveryColumns }: ReceiptSlice) {
  const size = deliveryColumns.length + 2;
  const byReceipt = new Map<number, number[]>();
  for (let at = 0; at < deliveries.length / size; at += 1) {
    const receipt = deliveries[at * size] ?? 0;
    const list = byReceipt.get(receipt) ?? [];
    list.push(at);
    byReceipt.set(receipt, list);
  }
  return byReceipt;
}

/** Reads a group by the names of its columns; an unknown one is 0. */
function reader(names: readonly string[], numbers: Float64Array, from: number) {
  return (name: string): number => {
    const place = names.indexOf(name);
    return place === -1 ? 0 : (numbers[from + place] ?? 0);
  };
}

/** This version's number of the other's reason; 0 for none, and for one that is unknown here. */
function numberOf(own: readonly string[], others: readonly string[], number: number): number {
  return own.indexOf(others[number - 1] ?? "") + 1;
}
