/**
 * What the network did with transactions, from the log of changes: processed, landed, expired or
 * dropped, for each account that sent them. A transaction that has landed and was accepted again
 * has landed once more, for no account. Numbers and bytes only, for a reader that passes on
 * thousands a second.
 */

import { LANDED_AGAIN, NONE, OTHER_CHANGE, STATE_LANDED, STATE_PROCESSED } from "./columns.ts";
import { NO_ERROR } from "./errors.ts";
import { RECEIPT_SUBMITTERS_MAX } from "./limits.ts";
import type { ReceiptStore } from "./store.ts";

/** One of these at a time; valid until the next. */
export interface NetworkChange {
  /** "": no account, only whoever waits for the transaction's end. */
  account: string;
  /** Its number in RECEIPT_STATES. */
  state: number;
  /** The first signature; borrowed. */
  signature: Uint8Array;
  /** null: not known. */
  slot: number | null;
  /** Whether its execution failed. */
  hasFailed: boolean;
  /** From the transaction's receipt to when this became known. */
  afterNs: number;
}

/**
 * Calls `take` for the changes from number `from` on, of at most `stepsMax` that it checks, at most
 * `callsMax` times: at least RECEIPT_SUBMITTERS_MAX, because a change is taken for all accounts or
 * for none. Returns the number to continue from.
 */
export type ReadNetworkChanges = (
  from: number,
  stepsMax: number,
  callsMax: number,
  take: (change: NetworkChange) => void,
) => number;

export function createNetworkChanges(store: ReceiptStore): ReadNetworkChanges {
  const { changes, submitters, rows } = store;
  const change: NetworkChange = {
    account: "",
    state: 0,
    signature: new Uint8Array(0),
    slot: null,
    hasFailed: false,
    afterNs: 0.5,
  };

  function fill(row: number, state: number): void {
    const slot = rows.landingSlot[row] ?? NONE;
    change.state = state;
    change.signature = store.signatureOf(row);
    change.slot = slot === NONE ? null : slot;
    change.hasFailed = (rows.error[row] ?? NO_ERROR) !== NO_ERROR;
    change.afterNs = Math.max(0, (rows.landingNs[row] ?? 0) - (rows.receivedNs[row] ?? 0));
  }

  function accountsOf(row: number): number {
    let count = 0;
    while (count < RECEIPT_SUBMITTERS_MAX && submitters.submitterAt(row, count) !== null) {
      count += 1;
    }
    return count;
  }

  return (from, stepsMax, callsMax, take) => {
    let calls = 0;
    const first = Math.max(from, changes.first);
    const end = Math.min(changes.next, first + stepsMax);
    for (let number = first; number < end; number += 1) {
      const state = changes.stateOf(number);
      if (state < STATE_PROCESSED || state === OTHER_CHANGE) continue;
      const row = store.rowOfSequence(changes.sequenceOf(number));
      if (row === NONE) continue;
      const isAgain = state === LANDED_AGAIN;
      // In flight again meanwhile: whoever waits now waits for another end.
      if (!isAgain && state >= STATE_LANDED && store.stateOf(row) !== state) continue;
      const accounts = isAgain ? 0 : accountsOf(row);
      calls += isAgain ? 1 : accounts;
      if (calls > callsMax) return number;
      fill(row, isAgain ? STATE_LANDED : state);
      if (isAgain) {
        change.account = "";
        take(change);
      }
      for (let place = 0; place < accounts; place += 1) {
        change.account = submitters.submitterAt(row, place) ?? "";
        take(change);
      }
    }
    return end;
  };
}
