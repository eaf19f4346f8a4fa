/**
 * Derives a receipt's state from events. The delivery state and the landing are stored separately,
 * so that rolling back a block on an abandoned fork restores the former; each visible change is
 * logged once for stream readers. While a successor follows, all other changes are logged for it.
 *
 *  accepted ─▶ sent ─▶ acknowledged          (processed) ─▶ landed
 *               │  ▲                    hides      any   ─▶ expired | dropped
 *               ▼  │ resend              ◀──
 *              failed
 *
 * Hot path: numbers in typed arrays.
 */

import type { Outcome } from "../core/flow.ts";
import {
  IN_FLIGHT,
  OTHER_CHANGE,
  STATE_ACCEPTED,
  STATE_ACKNOWLEDGED,
  STATE_FAILED,
  STATE_SENT,
} from "./columns.ts";
import { NO_ERROR } from "./errors.ts";
import type { ReceiptStore } from "./store.ts";

/** Applies an outcome of one of the row's deliveries. */
export function recordDelivery(store: ReceiptStore, row: number, kind: Outcome["kind"]): void {
  const { rows, changes } = store;
  const { next } = changes;
  const state = rows.deliveryState[row] ?? STATE_ACCEPTED;
  const open = rows.deliveriesOpen[row] ?? 0;
  if (kind === "sent") {
    rows.deliveriesOpen[row] = open + 1;
    if (state !== STATE_ACKNOWLEDGED) setDeliveryState(store, row, STATE_SENT);
  } else if (kind !== "dropped") {
    rows.deliveriesOpen[row] = Math.max(0, open - 1);
    if (kind === "acked") setDeliveryState(store, row, STATE_ACKNOWLEDGED);
    else if (state === STATE_SENT && open <= 1) setDeliveryState(store, row, STATE_FAILED);
  }
  if (changes.next === next) logOther(store, row);
}

/** Logs for a successor, if one follows, that something other than the row's state changed. */
export function logOther(store: ReceiptStore, row: number): void {
  if (store.changes.isFollowed) store.changes.add(store.sequenceOf(row), OTHER_CHANGE);
}

function setDeliveryState(store: ReceiptStore, row: number, state: number): void {
  const { rows, changes } = store;
  if (rows.deliveryState[row] === state) return;
  rows.deliveryState[row] = state;
  if (rows.landing[row] === IN_FLIGHT) changes.add(store.sequenceOf(row), state);
}

/** Sets the network's result: a code of the column `landing`, with its slot or NONE. */
export function setLanding(
  store: ReceiptStore,
  row: number,
  landing: number,
  slot: number,
  atNs: number,
): void {
  const { rows, changes } = store;
  const before = store.stateOf(row);
  rows.landing[row] = landing;
  rows.landingSlot[row] = slot;
  rows.landingNs[row] = atNs;
  const state = store.stateOf(row);
  if (state !== before) changes.add(store.sequenceOf(row), state);
  else logOther(store, row);
}

/** Replaces the network's error, JSON text or null. */
export function setError({ rows, errors }: ReceiptStore, row: number, text: string | null): void {
  const before = rows.error[row] ?? NO_ERROR;
  rows.error[row] = errors.take(text);
  errors.release(before);
}
