/**
 * Query parameters of the receipt endpoints. Anything invalid is rejected with a message that
 * states what was found and what is needed. Unknown names are rejected too: a misspelt filter
 * would return what was not asked for. The key may be among the parameters (framing.ts).
 */

import type { Rejection } from "../../core/errors.ts";
import { RECEIPT_LIST_MAX } from "../../core/limits.ts";
import type { ListQuery, WaitGoal } from "../../core/receipt-source.ts";
import { RECEIPT_STATES, type ReceiptState } from "../../core/receipt-state.ts";
import {
  RECEIPT_LIST_DEFAULT,
  RECEIPT_LONG_POLL_MS,
  RECEIPT_LONG_POLL_MS_MAX,
  RECEIPT_LONG_POLL_MS_MIN,
} from "../limits.ts";

export interface WaitQuery {
  /** null: respond immediately. */
  readonly goal: WaitGoal | null;
  readonly timeoutMs: number;
}

export interface StreamQuery {
  readonly states: readonly ReceiptState[] | null;
}

/** A parsed query, or its rejection. */
export type Read<Query> =
  | { readonly kind: "query"; readonly query: Query }
  | { readonly kind: "rejected"; readonly rejection: Rejection };

/** A signature is 64 bytes, which are 64 to 88 digits of base 58. */
export const SIGNATURE = /^[1-9A-HJ-NP-Za-km-z]{64,88}$/;

/** `wait` and `timeout` of one receipt. */
export function readWaitQuery(text: string): Read<WaitQuery> {
  return read(text, ["wait", "timeout"], ({ wait, timeout }) => {
    if (wait === undefined && timeout !== undefined) {
      throw new BadQuery(`timeout is ${shown(timeout)} without a wait, wait=landed is needed`);
    }
    if (wait !== undefined && wait !== "landed" && wait !== "processed") {
      throw new BadQuery(`wait is ${shown(wait)}, landed or processed is needed`);
    }
    return { goal: wait ?? null, timeoutMs: timeoutOf(timeout) };
  });
}

/** `state`, `limit` and `before` of a list. */
export function readListQuery(text: string): Read<ListQuery> {
  return read(text, ["state", "limit", "before"], ({ state, limit, before }) => {
    if (before !== undefined && !SIGNATURE.test(before)) {
      throw new BadQuery(`before is ${shown(before)}, a signature in base58 is needed`);
    }
    return { states: statesOf(state), limit: limitOf(limit), before: before ?? null };
  });
}

/** `state` of a stream. */
export function readStreamQuery(text: string): Read<StreamQuery> {
  return read(text, ["state"], ({ state }) => ({ states: statesOf(state) }));
}

/** Internal to this file: carries a nested value's error message. */
class BadQuery extends Error {}

type Given = Readonly<Record<string, string | undefined>>;

function read<Query>(
  text: string,
  names: readonly string[],
  make: (given: Given) => Query,
): Read<Query> {
  try {
    return { kind: "query", query: make(givenOf(text, names)) };
  } catch (error) {
    if (!(error instanceof BadQuery)) throw error;
    const rejection = { reason: "invalid_params", message: error.message, data: {} } as const;
    return { kind: "rejected", rejection };
  }
}

function givenOf(text: string, names: readonly string[]): Given {
  const given: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(text)) {
    if (name === "api-key") continue;
    if (!names.includes(name)) {
      throw new BadQuery(`the query has ${shown(name)}, only ${names.join(", ")} are known here`);
    }
    if (name in given) throw new BadQuery(`${name} is given twice, once is needed`);
    given[name] = value;
  }
  return given;
}

function timeoutOf(text: string | undefined): number {
  if (text === undefined) return RECEIPT_LONG_POLL_MS;
  const [, amount, unit] = /^(\d{1,5}(?:\.\d{1,3})?)(ms|s)$/.exec(text) ?? [];
  const ms = Number(amount) * (unit === "s" ? 1000 : 1);
  if (ms >= RECEIPT_LONG_POLL_MS_MIN && ms <= RECEIPT_LONG_POLL_MS_MAX) return ms;
  const range = `${RECEIPT_LONG_POLL_MS_MIN}ms to ${RECEIPT_LONG_POLL_MS_MAX / 1000}s`;
  throw new BadQuery(`timeout is ${shown(text)}, a duration of ${range} is needed, like 10s`);
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return RECEIPT_LIST_DEFAULT;
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= RECEIPT_LIST_MAX) return limit;
  throw new BadQuery(`limit is ${shown(text)}, a number from 1 to ${RECEIPT_LIST_MAX} is needed`);
}

function statesOf(text: string | undefined): readonly ReceiptState[] | null {
  if (text === undefined) return null;
  return text.split(",").map((name) => {
    const state = RECEIPT_STATES.find((each) => each === name);
    if (state !== undefined) return state;
    throw new BadQuery(`state has ${shown(name)}, some of ${RECEIPT_STATES.join(",")} are needed`);
  });
}

/** The value as quoted in a message, truncated. */
function shown(text: string): string {
  return JSON.stringify(text.slice(0, SHOWN_CHARS_MAX));
}

const SHOWN_CHARS_MAX = 40;
