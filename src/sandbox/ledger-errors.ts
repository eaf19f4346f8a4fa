/**
 * Translates the virtual machine's errors into those of the network's RPC.
 *
 * litesvm reports an error without fields as its index in an enumeration of its own, whose order is
 * not quite that of the network. A transaction with an error either lands, is charged and has an
 * `err` in its status, or stays out of every block; leaders never report which.
 */

import { INSTRUCTION_ERRORS, TRANSACTION_ERRORS } from "../cluster/geyser/transaction-error.ts";

/** Errors with fields, for which litesvm has objects instead of an index. */
const WITH_FIELDS: ReadonlySet<string> = new Set([
  "InstructionError",
  "DuplicateInstruction",
  "InsufficientFundsForRent",
  "ProgramExecutionTemporarilyRestricted",
  "Custom",
  "BorshIoError",
]);
const isFieldless = (name: string): boolean => !WITH_FIELDS.has(name);

/** `TransactionErrorFieldless` of litesvm 1.5, in which two errors are the other way round. */
const FIELDLESS = TRANSACTION_ERRORS.filter(isFieldless);
const OTHER_ORDER = ["ResanitizationNeeded", "InvalidLoadedAccountsDataSizeLimit"];
FIELDLESS.splice(FIELDLESS.indexOf("InvalidLoadedAccountsDataSizeLimit"), 2, ...OTHER_ORDER);
/** `InstructionErrorFieldless` of litesvm 1.5: an error that lost its field is the last one. */
const INSTRUCTION_FIELDLESS = [...INSTRUCTION_ERRORS.filter(isFieldless), "BorshIoError"];

/** Errors without fields whose transaction lands and pays its fee (SIMD-0082, 2026-11). */
const FEE_ONLY: ReadonlySet<string> = new Set([
  "ProgramAccountNotFound",
  "InvalidProgramForExecution",
  "MaxLoadedAccountsDataSizeExceeded",
]);

/** `err` as JSON-RPC shows it: a name, or one name with its fields. */
export type RpcError = string | Readonly<Record<string, unknown>>;

export interface LedgerError {
  readonly err: RpcError;
  /** Whether the transaction lands with this error. */
  readonly lands: boolean;
}

/** The virtual machine's error: an index, or an object whose fields indicate the kind. */
type RawError =
  | number
  | { readonly index: number; err(): number | object }
  | { readonly index: number }
  | { readonly accountIndex: number };

/** A virtual machine error in the RPC's form. */
export function ledgerError(raw: RawError): LedgerError {
  if (typeof raw === "number") {
    const name = FIELDLESS[raw] ?? "SanitizeFailure";
    return { err: name, lands: FEE_ONLY.has(name) };
  }
  if ("err" in raw) {
    return { err: { InstructionError: [raw.index, instructionError(raw.err())] }, lands: true };
  }
  if ("accountIndex" in raw) {
    const fields = { account_index: raw.accountIndex };
    return { err: { InsufficientFundsForRent: fields }, lands: true };
  }
  return { err: { DuplicateInstruction: raw.index }, lands: false };
}

/** Whether a transaction with this error changes nothing but the payer's balance, by its fee. */
export function isFeeOnly({ err }: LedgerError): boolean {
  return typeof err === "string" && FEE_ONLY.has(err);
}

function instructionError(raw: number | object): RpcError {
  if (typeof raw === "number") return INSTRUCTION_FIELDLESS[raw] ?? "GenericError";
  if ("code" in raw) return { Custom: raw.code };
  return "BorshIoError";
}
