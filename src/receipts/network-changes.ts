/**
 * What the network did with transactions, from the log of changes: processed, landed, expired or
 * dropped, for each account that sent them. Numbers and bytes only, for a reader that passes on
 * thousands a second.
 */

import { NONE, STATE_PROCESSED } from "./columns.ts";
import { NO_ERROR } from "./errors.ts";
import { RECEIPT_SUBMITTERS_MAX } from "./limits.ts";
import type { ReceiptStore } from "./store.ts";

/** One of these at a time; valid until the next. */
export interface NetworkChange {
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
 * Calls `take` for the changes from number `from` on, of at most `stepsMax` that it checks, until
 * it returns false. Returns the number to continue from.
 */
export type ReadNetworkChanges = (
  from: number,
  stepsMax: number,
  take: (change: NetworkChange) => boolean,
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

  return (from, stepsMax, take) => {
    const first = Math.max(from, changes.first);
    const end = Math.min(changes.next, first + stepsMax);
    for (let number = first; number < end; number += 1) {
      const state = changes.stateOf(number);
      if (state < STATE_PROCESSED) continue;
      const row = store.rowOfSequence(changes.sequenceOf(number));
      if (row === NONE) continue;
      fill(row, state);
      for (let place = 0; place < RECEIPT_SUBMITTERS_MAX; place += 1) {
        const account = submitters.submitterAt(row, place);
        if (account === null) break;
        change.account = account;
        if (!take(change)) return number;
      }
    }
    return end;
  };
}
