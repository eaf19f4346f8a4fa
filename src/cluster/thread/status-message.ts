/**
 * Statuses as a message: numbers of all signatures as arrays, because as many records take ten
 * times as long to copy.
 */

import { STATUS_ERROR_CHARS_MAX } from "../limits.ts";
import type { StatusResponse, TxStatus } from "../ports.ts";

export interface StatusesMessage {
  readonly kind: "statuses";
  /** The request's id. */
  readonly id: number;
  /** The slot that the responding node had processed. */
  readonly slot: number;
  /** The slot of each transaction's block; -1 for one that no recent block holds. */
  readonly slots: Float64Array;
  /** 1 for each whose block is confirmed. */
  readonly confirmed: Uint8Array;
  /** The network's error as JSON text, of those that failed, by index. */
  readonly errors: readonly (readonly [index: number, error: string])[];
}

/** As JSON text. */
const TOO_LONG = '"an error whose text is too long"';

/** The network's error, or a fixed text instead of one of any length. */
export function boundedError(error: string): string;
export function boundedError(error: string | null): string | null;
export function boundedError(error: string | null): string | null {
  return error === null || error.length <= STATUS_ERROR_CHARS_MAX ? error : TOO_LONG;
}

export function statusesMessage(id: number, { slot, statuses }: StatusResponse): StatusesMessage {
  const slots = new Float64Array(statuses.length);
  const confirmed = new Uint8Array(statuses.length);
  const errors: [number, string][] = [];
  for (const [index, status] of statuses.entries()) {
    slots[index] = status?.slot ?? -1;
    confirmed[index] = status?.confirmed === true ? 1 : 0;
    const error = status?.error ?? null;
    if (error !== null) errors.push([index, boundedError(error)]);
  }
  return { kind: "statuses", id, slot, slots, confirmed, errors };
}

/** Transactions of one request are often in one block and then share one record. */
export function readStatusesMessage(message: StatusesMessage): StatusResponse {
  const errors = message.errors.length === 0 ? null : new Map(message.errors);
  const statuses: (TxStatus | null)[] = [];
  let last: TxStatus | null = null;
  for (const [index, slot] of message.slots.entries()) {
    const confirmed = message.confirmed[index] === 1;
    const error = errors?.get(index) ?? null;
    if (slot < 0) {
      statuses.push(null);
      continue;
    }
    if (last === null || last.slot !== slot || last.confirmed !== confirmed || last.error !== error)
      last = { slot, confirmed, error };
    statuses.push(last);
  }
  return { slot: message.slot, statuses };
}
