/**
 * One decoder with one tip account, and its validation results as words for assertions.
 */

import { DECODE_ERROR, type DecodeErrorName } from "../../src/core/decode-errors.ts";
import type { Accepted, ValidationResult } from "../../src/core/flow.ts";
import { createTransactionDecoder } from "../../src/decode/transaction.ts";
import {
  type BuiltTransaction,
  buildTransaction,
  newKeypair,
  type RawTransaction,
  serializeTransaction,
  type TransactionSpec,
} from "./transactions.ts";

export const LAMPORTS_MIN = 1_000_000;
export const tipAccount = newKeypair(9);
/** Also known to the decoder, so that the list has more than one. */
export const otherTipAccount = newKeypair(10);

export const decoder = createTransactionDecoder({
  tipAccounts: [otherTipAccount.publicKey, tipAccount.publicKey],
  lamportsMin: LAMPORTS_MIN,
});

const NAMES = new Map(Object.entries(DECODE_ERROR).map(([name, code]) => [code, name]));

/** "accepted", or the name of the error. */
export function validationOf(bytes: Uint8Array): "accepted" | DecodeErrorName {
  return nameOf(decoder.decode(bytes));
}

export function nameOf(validation: ValidationResult): "accepted" | DecodeErrorName {
  if (validation.kind === "accepted") return "accepted";
  // The map consists of DECODE_ERROR's own entries.
  return NAMES.get(validation.errorCode) as DecodeErrorName;
}

/** The record of bytes that must be accepted. */
export function accepted(bytes: Uint8Array): Accepted {
  const validation = decoder.decode(bytes);
  if (validation.kind !== "accepted") throw new Error(`rejected: ${nameOf(validation)}`);
  return validation;
}

/** A transaction with a tip of the minimum, unless the spec has tips of its own. */
export function tipped(spec: TransactionSpec = {}): BuiltTransaction {
  return buildTransaction({
    tips: [{ to: tipAccount.publicKey, lamports: LAMPORTS_MIN }],
    sign: false,
    ...spec,
  });
}

/** The validation result of a tipped transaction with changed fields. Unsigned. */
export function validationWith(
  version: -1 | 0 | 1,
  change: (parts: RawTransaction) => Partial<RawTransaction>,
): "accepted" | DecodeErrorName {
  const { parts } = tipped({ version });
  return validationOf(serializeTransaction({ ...parts, ...change(parts) }, []).bytes);
}
