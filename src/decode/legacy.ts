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

import { FAULT } from "../core/faults.ts";
import { LEGACY_TRANSACTION_BYTES_MAX } from "../core/limits.ts";
import { judgeComputeBudget } from "./compute-budget.ts";
import {
  ACCOUNTS_MAX,
  INSTRUCTION_ACCOUNTS_MAX,
  LEGACY_KEYS_MAX,
  LOOKUP_TABLES_MAX,
} from "./limits.ts";
import {
  judgeAccountIndexes,
  judgeDuplicates,
  judgeEnd,
  judgeInstructionCount,
  judgeKeyCount,
  judgeSignatureCount,
  noteHeader,
  noteInstruction,
  reaches,
} from "./message.ts";
import { byteAt, fail, type Scan } from "./scan.ts";
import type { TipAccounts } from "./tip.ts";

const VERSION_BIT = 0x80;

/** Reads a whole legacy or v0 transaction, whose first byte is below 0x80. */
export function scanLegacyOrV0(scan: Scan, tips: TipAccounts): boolean {
  if (scan.size > LEGACY_TRANSACTION_BYTES_MAX) {
    return fail(scan, FAULT.too_long, scan.size, LEGACY_TRANSACTION_BYTES_MAX);
  }
  const count = byteAt(scan.bytes, 0);
  if (!judgeSignatureCount(scan, count)) return false;
  scan.signatureOffset = 1;
  return scanMessage(scan, tips, 1 + 64 * count);
}

/** Reads the message from `start` to the end of the bytes; `scan.signatureCount` is set. */
export function scanMessage(scan: Scan, tips: TipAccounts, start: number): boolean {
  // The shortest start: version, header and the key count.
  if (!reaches(scan, start + 4)) return false;
  const bytes = scan.bytes;
  scan.messageOffset = start;
  let at = start;
  scan.version = -1;
  const prefix = byteAt(bytes, start);
  if (prefix >= VERSION_BIT) {
    const version = prefix - VERSION_BIT;
    if (version === 1) return fail(scan, FAULT.version_misplaced, version, 0);
    if (version !== 0) return fail(scan, FAULT.version_unknown, version, 0);
    scan.version = 0;
    at += 1;
    if (!reaches(scan, at + 4)) return false;
  }
  const required = byteAt(bytes, at);
  if (required !== scan.signatureCount) {
    return fail(scan, FAULT.signature_count, scan.signatureCount, required);
  }
  if (!noteHeader(scan, at + 1)) return false;
  // A count of two bytes is above the most there can be, so its first byte tells enough.
  if (!judgeKeyCount(scan, byteAt(bytes, at + 3), LEGACY_KEYS_MAX)) return false;
  scan.keysOffset = at + 4;
  scan.blockhashOffset = scan.keysOffset + 32 * scan.keyCount;
  // The blockhash and the instruction count.
  if (!reaches(scan, scan.blockhashOffset + 33)) return false;
  if (!judgeDuplicates(scan)) return false;

  at = scanInstructions(scan, tips, scan.blockhashOffset + 32);
  if (at === -1) return false;
  scan.accountCount = scan.keyCount;
  if (scan.version === 0) {
    at = scanTables(scan, at);
    if (at === -1) return false;
  }
  scan.messageEnd = at;
  return (
    judgeEnd(scan, at) && judgeAccountIndexes(scan, scan.accountCount) && judgeComputeBudget(scan)
  );
}

/** Answers where the instructions end; -1 with a fault. */
function scanInstructions(scan: Scan, tips: TipAccounts, start: number): number {
  const count = lengthAt(scan, start);
  if (count === -1 || !judgeInstructionCount(scan, count)) return -1;
  let at = start + lengthSize(count);
  for (let i = 0; i < count; i += 1) {
    if (!reaches(scan, at + 3)) return -1;
    const programIndex = byteAt(scan.bytes, at);
    const accountCount = lengthAt(scan, at + 1);
    if (accountCount === -1) return -1;
    if (accountCount > INSTRUCTION_ACCOUNTS_MAX) {
      fail(scan, FAULT.accounts_too_many, accountCount, INSTRUCTION_ACCOUNTS_MAX);
      return -1;
    }
    const accountsOffset = at + 1 + lengthSize(accountCount);
    const dataSize = lengthAt(scan, accountsOffset + accountCount);
    if (dataSize === -1) return -1;
    const dataOffset = accountsOffset + accountCount + lengthSize(dataSize);
    at = dataOffset + dataSize;
    if (!reaches(scan, at)) return -1;
    const sound = noteInstruction(
      scan,
      tips,
      i,
      programIndex,
      accountsOffset,
      accountCount,
      dataOffset,
      dataSize,
    );
    if (!sound) return -1;
  }
  return at;
}

/** Answers where the lookup tables end, and adds what they look up; -1 with a fault. */
function scanTables(scan: Scan, start: number): number {
  if (!reaches(scan, start + 1)) return -1;
  // A count of two bytes is above the most there can be, so its first byte tells enough.
  const count = byteAt(scan.bytes, start);
  if (count > LOOKUP_TABLES_MAX) {
    fail(scan, FAULT.tables_too_many, count, LOOKUP_TABLES_MAX);
    return -1;
  }
  let at = start + 1;
  for (let i = 0; i < count; i += 1) {
    const writable = lengthAt(scan, at + 32);
    if (writable === -1) return -1;
    at += 32 + lengthSize(writable) + writable;
    const readonly = lengthAt(scan, at);
    if (readonly === -1) return -1;
    at += lengthSize(readonly) + readonly;
    if (!reaches(scan, at)) return -1;
    if (writable + readonly === 0) {
      fail(scan, FAULT.table_unused, i, 1);
      return -1;
    }
    scan.accountCount += writable + readonly;
  }
  if (scan.accountCount > ACCOUNTS_MAX) {
    fail(scan, FAULT.lookups_too_many, scan.accountCount, ACCOUNTS_MAX);
    return -1;
  }
  return at;
}

/** The compact-u16 at `at`, in at most two bytes; -1 with a fault. */
function lengthAt(scan: Scan, at: number): number {
  if (!reaches(scan, at + 1)) return -1;
  const low = byteAt(scan.bytes, at);
  if (low < 0x80) return low;
  if (!reaches(scan, at + 2)) return -1;
  const high = byteAt(scan.bytes, at + 1);
  if (high > 0 && high < 0x80) return (low & 0x7f) | (high << 7);
  fail(scan, FAULT.length_malformed, at, 0);
  return -1;
}

/** How many bytes wrote this length: the shortest form is the only one. */
function lengthSize(length: number): number {
  return length < 0x80 ? 1 : 2;
}
