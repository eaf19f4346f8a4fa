/**
 * The receipts as accounts may read them: one, a list, and the changes since a number.
 *
 * Each response is built on request, in a bounded number of steps, and contains only the account's
 * own transactions. A ticket identifies one receipt and is cheap to check repeatedly.
 */

import type { Clock } from "../core/clock.ts";
import { decodeBase58, encodeSignature } from "../core/encoding.ts";
import { RECEIPT_LIST_STEPS_MAX } from "../core/limits.ts";
import type { ListQuery, ReceiptSource } from "../core/receipt-source.ts";
import { RECEIPT_STATES, type ReceiptState } from "../core/receipt-state.ts";
import { LANDED_AGAIN, NONE, STATE_LANDED, STATE_PROCESSED } from "./columns.ts";
import { RECEIPT_SUBMITTERS_MAX } from "./limits.ts";
import type { ReceiptStore } from "./store.ts";
import { NO_ACCOUNT } from "./submitters.ts";
import { type Receipt, type ReceiptSummary, receiptOf, stateName, summaryOf } from "./view.ts";

const SIGNATURE_BYTES = 64;

export interface ReceiptList {
  /** Newest first, by the account's first submission. */
  readonly transactions: readonly ReceiptSummary[];
  /** The `before` of the next page; null at the end. */
  readonly next: string | null;
}

export type ReceiptReader = ReceiptSource<Receipt, ReceiptList>;

export function createReceiptReader(
  clock: Clock,
  store: ReceiptStore,
  keepNs: number,
): ReceiptReader {
  const isKept = (row: number): boolean =>
    clock.nowNs() - (store.rows.receivedNs[row] ?? 0) <= keepNs;

  /** The node through which this account sees that receipt, or NONE. */
  function nodeOf(signature: string, account: string): number {
    const bytes = decodeBase58(signature, SIGNATURE_BYTES);
    if (bytes === null || bytes.length !== SIGNATURE_BYTES) return NONE;
    const row = store.find(bytes, 0);
    if (row === NONE || !isKept(row)) return NONE;
    return store.submitters.nodeOf(row, store.submitters.numberOf(account));
  }

  function list(account: string, { states, limit, before }: ListQuery): ReceiptList {
    const { submitters } = store;
    const wanted = maskOf(states);
    const from = before === null ? NONE : nodeOf(before, account);
    let node = submitters.newest(submitters.numberOf(account));
    if (before !== null) node = from === NONE ? NONE : submitters.older(from);
    const transactions: ReceiptSummary[] = [];
    let last = NONE;
    for (let steps = 0; node !== NONE && steps < RECEIPT_LIST_STEPS_MAX; steps += 1) {
      if (transactions.length === limit) break;
      last = submitters.rowOf(node);
      node = submitters.older(node);
      if ((wanted & (1 << store.stateOf(last))) === 0 || !isKept(last)) continue;
      transactions.push(summaryOf(store, last, encodeSignature(store.signatureOf(last))));
    }
    const isEnd = node === NONE || last === NONE;
    return { transactions, next: isEnd ? null : encodeSignature(store.signatureOf(last)) };
  }

  /** The receipt of a change, with the state it changed to. */
  function changed(row: number, state: number): Receipt {
    const receipt = receiptOf(store, row, encodeSignature(store.signatureOf(row)));
    return { ...receipt, state: stateName(state) };
  }

  return {
    find(signature, account) {
      const node = nodeOf(signature, account);
      return node === NONE ? null : receiptOf(store, store.submitters.rowOf(node), signature);
    },
    ticket(signature, account) {
      const node = nodeOf(signature, account);
      return node === NONE ? null : store.sequenceOf(store.submitters.rowOf(node));
    },
    reached(ticket, goal) {
      const row = store.rowOfSequence(ticket);
      const goalState = goal === "landed" ? STATE_LANDED : STATE_PROCESSED;
      return row === NONE || store.stateOf(row) >= goalState;
    },
    list,
    changes: store.changes,
    readChanges(account, from, { states, stepsMax }, take, onEvicted) {
      const { changes, submitters } = store;
      const submitter = submitters.numberOf(account);
      // An account without a receipt has no changes, or all its receipts were evicted.
      if (submitter === NO_ACCOUNT && onEvicted === undefined) return changes.next;
      const wanted = maskOf(states);
      const first = Math.max(from, changes.first);
      const end = Math.min(changes.next, first + stepsMax);
      for (let number = first; number < end; number += 1) {
        const state = changes.stateOf(number);
        if (state >= LANDED_AGAIN || (wanted & (1 << state)) === 0) continue;
        const row = store.rowOfSequence(changes.sequenceOf(number));
        if (row === NONE) onEvicted?.();
        if (row === NONE || submitters.nodeOf(row, submitter) === NONE) continue;
        if (!take(number, changed(row, state))) return number + 1;
      }
      return end;
    },
    eachChange(from, { wants, stepsMax }, take) {
      const { changes, submitters } = store;
      const first = Math.max(from, changes.first);
      const end = Math.min(changes.next, first + stepsMax);
      for (let number = first; number < end; number += 1) {
        const state = changes.stateOf(number);
        const row = store.rowOfSequence(changes.sequenceOf(number));
        if (row === NONE || state >= LANDED_AGAIN) continue;
        for (let place = 0; place < RECEIPT_SUBMITTERS_MAX; place += 1) {
          const account = submitters.submitterAt(row, place);
          if (account === null) break;
          if (!wants(account)) continue;
          take(number, stateName(state), account, () => changed(row, state));
        }
      }
      return end;
    },
  };
}

/** A bit for each wanted state. */
function maskOf(states: readonly ReceiptState[] | null): number {
  if (states === null) return -1;
  return states.reduce((mask, state) => mask | (1 << RECEIPT_STATES.indexOf(state)), 0);
}
