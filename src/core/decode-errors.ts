/**
 * Every error that decoding and validation can find in a transaction, as numbers.
 *
 * A worker thread or the native engine reports an error as three integers: its index in this table,
 * the value found and the value needed. Only the code that writes a response formats the message.
 * New rows go at the end; rows never change their index.
 */

import type { Rejection, RejectionReason } from "./errors.ts";
import type { DecodeErrorCode, Rejected } from "./flow.ts";

/** Formats the values found and needed. */
type MessageFormat = (found: number, needed: number) => string;

interface DecodeErrorRow<Name extends string> {
  readonly name: Name;
  readonly reason: RejectionReason;
  readonly message: MessageFormat;
}

function row<const Name extends string>(
  reason: RejectionReason,
  name: Name,
  message: MessageFormat,
): DecodeErrorRow<Name> {
  return { name, reason, message };
}

const undecodable = <const Name extends string>(name: Name, message: MessageFormat) =>
  row("undecodable", name, (found, needed) => {
    return `transaction could not be decoded: ${message(found, needed)}`;
  });

const hex = (value: number): string => `0x${value.toString(16).padStart(2, "0")}`;

const RAW_NEEDED = "the raw bytes of one serialized, signed transaction are needed";
const HEAP_SIZES = "32768 to 262144 bytes in steps of 1024";

/** The decoder's error table; `DECODE_ERROR.x` is the index of the row named x. */
const ROWS = [
  undecodable("empty", () => "the body is empty, one serialized transaction is needed"),

  // Bytes that are not a transaction.
  undecodable(
    "text_json",
    () => `JSON text was found, ${RAW_NEEDED} (JSON-RPC goes to /api/v1/sendTransaction)`,
  ),
  undecodable(
    "text_base64",
    () => `base64 text was found, ${RAW_NEEDED}: decode it first, or send it padded as text/plain`,
  ),
  undecodable("text_base58", () => `base58 text was found, ${RAW_NEEDED}: decode it first`),
  undecodable("text_hex", () => `hexadecimal text was found, ${RAW_NEEDED}: decode it first`),
  undecodable("text_other", () => {
    return `text was found, ${RAW_NEEDED}, or their padded base64 as text/plain`;
  }),
  undecodable("message_only", () => {
    return "a message without signatures was found, the signed transaction around it is needed";
  }),

  // Layout. Found and needed are sizes in bytes, or counts.
  undecodable("too_long", (found, needed) => {
    return `it has ${found} bytes, a transaction of its version has at most ${needed}`;
  }),
  undecodable("truncated", (found, needed) => {
    return `it ends after ${found} bytes where its lengths call for at least ${needed}`;
  }),
  undecodable("trailing_bytes", (found, needed) => {
    return `it has ${found} bytes where the transaction ends after ${needed}`;
  }),
  undecodable("version_unknown", (found) => {
    if (found === 0) return "it starts with 0x80 like a version 0 message, signatures belong there";
    return `it starts as version ${found}, only legacy, 0 and 1 exist`;
  }),
  undecodable("version_misplaced", () => {
    return "a version 1 message stands behind signatures, its signatures are needed at the end";
  }),
  undecodable("length_malformed", (found) => {
    return `the length at byte ${found} is not a compact-u16 in its shortest form, below 16384`;
  }),

  // Signatures, header and keys.
  undecodable("signatures_none", () => {
    return "it carries no signature, at least the fee payer's is needed: sign it first";
  }),
  undecodable("signatures_too_many", (found, needed) => {
    return `it claims ${found} signatures, at most ${needed} fit`;
  }),
  undecodable("signature_count", (found, needed) => {
    return `it carries ${found} signatures where its header requires ${needed}`;
  }),
  undecodable("payer_readonly", (found, needed) => {
    return `${found} of ${needed} signers are readonly, the fee payer must be writable`;
  }),
  undecodable("keys_none", () => "it names no account key, at least the fee payer's is needed"),
  undecodable("keys_too_many", (found, needed) => {
    return `it names ${found} account keys, at most ${needed} are allowed`;
  }),
  undecodable("keys_too_few", (found, needed) => {
    return `it names ${found} account keys where its header counts ${needed}`;
  }),
  undecodable("key_duplicate", (found, needed) => {
    return `account key ${found} is the same as account key ${needed}, each may stand once`;
  }),

  // Instructions.
  undecodable("instructions_too_many", (found, needed) => {
    return `it has ${found} instructions, at most ${needed} are allowed`;
  }),
  undecodable("program_is_payer", (found) => {
    return `instruction ${found} calls the fee payer, a program is needed`;
  }),
  undecodable("program_index", (found, needed) => {
    return `an instruction calls account ${found} where only ${needed} keys are in the message`;
  }),
  undecodable("account_index", (found, needed) => {
    return `an instruction names account ${found} where only ${needed} accounts exist`;
  }),
  undecodable("accounts_too_many", (found, needed) => {
    return `an instruction names ${found} accounts, at most ${needed} are allowed`;
  }),

  // Address lookup tables (version 0).
  undecodable("tables_too_many", (found, needed) => {
    return `it names ${found} address lookup tables, at most ${needed} fit`;
  }),
  undecodable("table_unused", (found) => {
    return `address lookup table ${found} looks up no account, at least one is needed`;
  }),
  undecodable("lookup_duplicate", (found, needed) => {
    return `address lookup table ${found} looks up account ${needed} twice, each may stand once`;
  }),
  undecodable("lookups_too_many", (found, needed) => {
    return `it has ${found} accounts including looked-up ones, leaders lock at most ${needed}`;
  }),

  // Settings: the version 1 configuration, or ComputeBudget instructions in other versions.
  undecodable("config_mask", (found, needed) => {
    return `its configuration mask is ${hex(found)}, only the bits of ${hex(needed)} are known`;
  }),
  undecodable("config_fee", (found) => {
    return `its configuration mask is ${hex(found)}: bits 0 and 1 go together for the priority fee`;
  }),
  undecodable("heap_size", (found) => {
    return `a heap of ${found} bytes is requested, ${HEAP_SIZES} are allowed`;
  }),
  undecodable("compute_budget_malformed", (found) => {
    return `instruction ${found} is not a ComputeBudget instruction that the network knows`;
  }),
  undecodable("compute_budget_duplicate", (found, needed) => {
    return `instruction ${found} repeats ComputeBudget instruction kind ${needed}, allowed once`;
  }),
  undecodable("loaded_accounts_size", (found, needed) => {
    return `a limit of ${found} loaded account bytes is set, at least ${needed} is needed`;
  }),

  // The tip. Found and needed are lamports.
  row("tip_missing", "tip_absent", (_, needed) => {
    return `no System Program transfer to a tip account was found, ${tip(needed)}`;
  }),
  row("tip_missing", "tip_too_low", (found, needed) => {
    return `a tip of ${found} lamports was found where ${needed} is the minimum`;
  }),
  row("tip_missing", "tip_account_readonly", (found, needed) => {
    return `a tip of ${found} lamports is for a readonly account, ${tip(needed)} to a writable one`;
  }),
  row("tip_missing", "tip_source_unfit", (found, needed) => {
    return `a tip of ${found} lamports comes from no writable signer, ${tip(needed)} from one`;
  }),
  row("tip_missing", "tip_in_table", (found, needed) => {
    const unseen = `a transfer of ${found} lamports goes to an account from a lookup table`;
    return `${unseen}, where no tip is seen: ${tip(needed)} to a static account`;
  }),

  // Signatures. Found is the index of the signature, needed is the number of signatures.
  row("signature_invalid", "signature_missing", (found, needed) => {
    return `${which(found, needed)} is all zeros: account key ${found} did not sign`;
  }),
  row("signature_invalid", "signature_wrong", (found, needed) => {
    return `${which(found, needed)} does not verify for account key ${found} over this message`;
  }),
  row("signature_invalid", "signature_malformed", (found, needed) => {
    return `${which(found, needed)} is not a canonical Ed25519 signature`;
  }),
  row("signature_invalid", "signer_key_malformed", (found, needed) => {
    return `${which(found, needed)} cannot be verified: account key ${found} is not sound`;
  }),

  // Failures while validating a sound transaction.
  row("internal", "worker_died", () => {
    return "the transaction could not be checked because of an internal error, send it again";
  }),
  row("overloaded", "ring_full", () => {
    return "more transactions wait to be checked than this edge holds, send it again";
  }),
] as const;

function tip(lamportsMin: number): string {
  return `a transfer of at least ${lamportsMin} lamports is needed`;
}

function which(index: number, count: number): string {
  return `signature ${index + 1} of ${count}`;
}

export type DecodeErrorName = (typeof ROWS)[number]["name"];

/** The index of each row by its name. */
// The type of fromEntries drops the names; the entries carry exactly these.
export const DECODE_ERROR = Object.fromEntries(ROWS.map((each, code) => [each.name, code])) as {
  readonly [Name in DecodeErrorName]: DecodeErrorCode;
};

/** The number of errors; every code is below it. */
export const DECODE_ERROR_COUNT = ROWS.length;

/** The reason under which responses and metrics report an error. */
export function reasonOf(errorCode: DecodeErrorCode): RejectionReason {
  return rowOf(errorCode).reason;
}

function rowOf(errorCode: DecodeErrorCode): DecodeErrorRow<DecodeErrorName> {
  const found = ROWS[errorCode];
  if (found === undefined) throw new RangeError(`no decode error has the code ${errorCode}`);
  return found;
}

/** The rejection that the client receives for a validation result. */
export function rejectionOf(rejected: Rejected): Rejection {
  const found = rowOf(rejected.errorCode);
  return {
    reason: found.reason,
    message: found.message(rejected.found, rejected.needed),
    data: { fault: found.name, found: rejected.found, needed: rejected.needed },
  };
}
