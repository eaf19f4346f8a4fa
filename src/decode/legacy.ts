// Hot path: no allocation.
/**
 * Legacy and v0 transactions: signatures first, then the message.
 *
 *   count sig[64]* message
 *   message = [0x80] header(3) count key[32]* blockhash[32] count instruction* [count table*]
 *
 * Counts are compact-u16, read as leaders read them: the shortest form only, one byte for
 * signatures, keys and tables, at most two elsewhere (Agave `agave-transaction-view`, 2026-11).
 */

import { DECODE_ERROR } from "../core/decode-errors.ts";
import { LEGACY_TRANSACTION_BYTES_MAX } from "../core/limits.ts";
import { validateComputeBudget } from "./compute-budget.ts";
import {
  ACCOUNT_LOCKS_MAX,
  INSTRUCTION_ACCOUNTS_MAX,
  LEGACY_KEYS_MAX,
  LOOKUP_TABLES_MAX,
} from "./limits.ts";
import {
  noteHeader,
  noteInstruction,
  reaches,
  validateAccountIndexes,
  validateDuplicates,
  validateEnd,
  validateInstructionCount,
  validateKeyCount,
  validateSignatureCount,
} from "./message.ts";
import { byteAt, fail, type ParseState } from "./parse-state.ts";
import type { TipAccounts } from "./tip.ts";

const VERSION_BIT = 0x80;

/** Parses a complete legacy or v0 transaction, whose first byte is below 0x80. */
export function parseLegacyOrV0(state: ParseState, tips: TipAccounts): boolean {
  if (state.size > LEGACY_TRANSACTION_BYTES_MAX) {
    return fail(state, DECODE_ERROR.too_long, state.size, LEGACY_TRANSACTION_BYTES_MAX);
  }
  const count = byteAt(state.bytes, 0);
  if (!validateSignatureCount(state, count)) return false;
  state.signatureOffset = 1;
  return parseMessage(state, tips, 1 + 64 * count);
}

/** Parses the message from `start` to the end of the bytes; `state.signatureCount` is set. */
export function parseMessage(state: ParseState, tips: TipAccounts, start: number): boolean {
  // The minimum: version, header and the key count.
  if (!reaches(state, start + 4)) return false;
  const bytes = state.bytes;
  state.messageOffset = start;
  let at = start;
  state.version = -1;
  const prefix = byteAt(bytes, start);
  if (prefix >= VERSION_BIT) {
    const version = prefix - VERSION_BIT;
    if (version === 1) return fail(state, DECODE_ERROR.version_misplaced, version, 0);
    if (version !== 0) return fail(state, DECODE_ERROR.version_unknown, version, 0);
    state.version = 0;
    at += 1;
    if (!reaches(state, at + 4)) return false;
  }
  const required = byteAt(bytes, at);
  if (required !== state.signatureCount) {
    return fail(state, DECODE_ERROR.signature_count, state.signatureCount, required);
  }
  if (!noteHeader(state, at + 1)) return false;
  // A two-byte count exceeds the maximum, so its first byte suffices.
  if (!validateKeyCount(state, byteAt(bytes, at + 3), LEGACY_KEYS_MAX)) return false;
  state.keysOffset = at + 4;
  state.blockhashOffset = state.keysOffset + 32 * state.keyCount;
  // The blockhash and the instruction count.
  if (!reaches(state, state.blockhashOffset + 33)) return false;
  if (!validateDuplicates(state)) return false;

  at = parseInstructions(state, tips, state.blockhashOffset + 32);
  if (at === -1) return false;
  state.accountCount = state.keyCount;
  if (state.version === 0) {
    at = parseTables(state, at);
    if (at === -1) return false;
  }
  state.messageEnd = at;
  return (
    validateEnd(state, at) &&
    validateAccountIndexes(state, state.accountCount) &&
    validateComputeBudget(state)
  );
}

/** Returns where the instructions end; -1 with an error. */
function parseInstructions(state: ParseState, tips: TipAccounts, start: number): number {
  const count = lengthAt(state, start);
  if (count === -1 || !validateInstructionCount(state, count)) return -1;
  let at = start + lengthSize(count);
  for (let i = 0; i < count; i += 1) {
    if (!reaches(state, at + 3)) return -1;
    const programIndex = byteAt(state.bytes, at);
    const accountCount = lengthAt(state, at + 1);
    if (accountCount === -1) return -1;
    if (accountCount > INSTRUCTION_ACCOUNTS_MAX) {
      fail(state, DECODE_ERROR.accounts_too_many, accountCount, INSTRUCTION_ACCOUNTS_MAX);
      return -1;
    }
    const accountsOffset = at + 1 + lengthSize(accountCount);
    const dataSize = lengthAt(state, accountsOffset + accountCount);
    if (dataSize === -1) return -1;
    const dataOffset = accountsOffset + accountCount + lengthSize(dataSize);
    at = dataOffset + dataSize;
    if (!reaches(state, at)) return -1;
    const isValid = noteInstruction(
      state,
      tips,
      i,
      programIndex,
      accountsOffset,
      accountCount,
      dataOffset,
      dataSize,
    );
    if (!isValid) return -1;
  }
  return at;
}

/** By index in the table, whether the table that is being read looks it up. */
const lookedUp = new Uint8Array(256);

/** Returns where the lookup tables end, and adds the accounts they load; -1 with an error. */
function parseTables(state: ParseState, start: number): number {
  if (!reaches(state, start + 1)) return -1;
  // A two-byte count exceeds the maximum, so its first byte suffices.
  const count = byteAt(state.bytes, start);
  if (count > LOOKUP_TABLES_MAX) {
    fail(state, DECODE_ERROR.tables_too_many, count, LOOKUP_TABLES_MAX);
    return -1;
  }
  let at = start + 1;
  for (let i = 0; i < count; i += 1) {
    lookedUp.fill(0);
    const writable = lengthAt(state, at + 32);
    if (writable === -1) return -1;
    at += 32 + lengthSize(writable);
    if (!noteLookups(state, i, at, writable)) return -1;
    at += writable;
    const readonly = lengthAt(state, at);
    if (readonly === -1) return -1;
    at += lengthSize(readonly);
    if (!noteLookups(state, i, at, readonly)) return -1;
    at += readonly;
    if (writable + readonly === 0) {
      fail(state, DECODE_ERROR.table_unused, i, 1);
      return -1;
    }
    state.accountCount += writable + readonly;
  }
  if (state.accountCount > ACCOUNT_LOCKS_MAX) {
    fail(state, DECODE_ERROR.lookups_too_many, state.accountCount, ACCOUNT_LOCKS_MAX);
    return -1;
  }
  return at;
}

/**
 * Notes the accounts that a table looks up, `count` bytes from `start` on. Leaders drop what loads
 * an account twice. Agave `accounts-db/src/account_locks.rs`, 2026-11.
 */
function noteLookups(state: ParseState, table: number, start: number, count: number): boolean {
  if (!reaches(state, start + count)) return false;
  for (let at = start; at < start + count; at += 1) {
    const account = byteAt(state.bytes, at);
    if (lookedUp[account] === 1) {
      return fail(state, DECODE_ERROR.lookup_duplicate, table, account);
    }
    lookedUp[account] = 1;
  }
  return true;
}

/** The compact-u16 at `at`, in at most two bytes; -1 with an error. */
function lengthAt(state: ParseState, at: number): number {
  if (!reaches(state, at + 1)) return -1;
  const low = byteAt(state.bytes, at);
  if (low < 0x80) return low;
  if (!reaches(state, at + 2)) return -1;
  const high = byteAt(state.bytes, at + 1);
  if (high > 0 && high < 0x80) return (low & 0x7f) | (high << 7);
  fail(state, DECODE_ERROR.length_malformed, at, 0);
  return -1;
}

/** The encoded size of this length: only the shortest form is valid. */
function lengthSize(length: number): number {
  return length < 0x80 ? 1 : 2;
}
