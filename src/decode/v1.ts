// Hot path: no allocation.
/**
 * v1 transactions (SIMD-0385): the message first, the signatures at the end, no length prefixes.
 *
 *    0  0x81                      42            key[32] * A
 *    1  header (3)                              word[4] * bits of the mask
 *    4  configuration mask u32                  (program u8, accounts u8, data size u16) * I
 *    8  lifetime specifier [32]                 (account u8 *, data) * I
 *   40  I, how many instructions                signature[64] * header[0]
 *   41  A, how many keys
 *
 * Layout and rules as in Agave `agave-transaction-view` 4.2.2, 2026-11.
 */

import { DECODE_ERROR } from "../core/decode-errors.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../core/limits.ts";
import { validateHeap } from "./compute-budget.ts";
import { ACCOUNT_LOCKS_MAX } from "./limits.ts";
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
import { byteAt, fail, type ParseState, u32At, u64At } from "./parse-state.ts";
import type { TipAccounts } from "./tip.ts";

export const V1_FIRST_BYTE = 0x81;
/** Where the keys start. */
export const V1_KEYS_OFFSET = 42;
const MASK_OFFSET = 4;
const LIFETIME_OFFSET = 8;
const INSTRUCTION_HEADER_BYTES = 4;

/** Both bits or none: the priority fee in lamports, u64. */
const MASK_FEE = 0b11;
const MASK_UNIT_LIMIT = 1 << 2;
const MASK_LOADED_BYTES = 1 << 3;
const MASK_HEAP = 1 << 4;
const MASK_KNOWN = MASK_FEE | MASK_UNIT_LIMIT | MASK_LOADED_BYTES | MASK_HEAP;

/** Parses a complete v1 transaction, whose first byte is 0x81. */
export function parseV1(state: ParseState, tips: TipAccounts): boolean {
  if (state.size > V1_TRANSACTION_BYTES_MAX) {
    return fail(state, DECODE_ERROR.too_long, state.size, V1_TRANSACTION_BYTES_MAX);
  }
  if (!reaches(state, V1_KEYS_OFFSET)) return false;
  const bytes = state.bytes;
  state.version = 1;
  state.messageOffset = 0;
  state.blockhashOffset = LIFETIME_OFFSET;
  state.keysOffset = V1_KEYS_OFFSET;
  if (!validateSignatureCount(state, byteAt(bytes, 1)) || !noteHeader(state, 2)) return false;
  const mask = u32At(bytes, MASK_OFFSET);
  if (!validateMask(state, mask)) return false;
  const instructionCount = byteAt(bytes, 40);
  if (!validateInstructionCount(state, instructionCount)) return false;
  if (!validateKeyCount(state, byteAt(bytes, 41), ACCOUNT_LOCKS_MAX)) return false;
  const configOffset = V1_KEYS_OFFSET + 32 * state.keyCount;
  if (!reaches(state, configOffset)) return false;
  if (!validateDuplicates(state)) return false;

  const headersOffset = parseConfig(state, mask, configOffset);
  if (headersOffset === -1) return false;
  const end = parseInstructions(state, tips, headersOffset, instructionCount);
  if (end === -1) return false;
  state.accountCount = state.keyCount;
  state.messageEnd = end;
  state.signatureOffset = end;
  // Only the signatures are missing: an unsigned message.
  if (end === state.size) return fail(state, DECODE_ERROR.message_only, state.size, 0);
  return (
    validateEnd(state, end + 64 * state.signatureCount) &&
    validateAccountIndexes(state, state.accountCount)
  );
}

function validateMask(state: ParseState, mask: number): boolean {
  if (mask > MASK_KNOWN) return fail(state, DECODE_ERROR.config_mask, mask, MASK_KNOWN);
  const fee = mask & MASK_FEE;
  if (fee !== 0 && fee !== MASK_FEE) return fail(state, DECODE_ERROR.config_fee, mask, MASK_FEE);
  return true;
}

/** Records the configuration and returns where it ends; -1 with an error. */
function parseConfig(state: ParseState, mask: number, start: number): number {
  const bytes = state.bytes;
  let end = start;
  if ((mask & MASK_FEE) !== 0) end += 8;
  for (let bit = MASK_UNIT_LIMIT; bit <= MASK_HEAP; bit <<= 1) if ((mask & bit) !== 0) end += 4;
  if (!reaches(state, end)) return -1;
  let at = start;
  if ((mask & MASK_FEE) !== 0) {
    state.feeLamports = u64At(bytes, at);
    at += 8;
  }
  // The unit limit and the loaded size only bound execution: no value of theirs is rejected.
  if ((mask & MASK_UNIT_LIMIT) !== 0) at += 4;
  if ((mask & MASK_LOADED_BYTES) !== 0) at += 4;
  if ((mask & MASK_HEAP) !== 0) state.heapBytes = u32At(bytes, at);
  return validateHeap(state) ? end : -1;
}

/** Returns where the payloads end; -1 with an error. */
function parseInstructions(
  state: ParseState,
  tips: TipAccounts,
  headersOffset: number,
  count: number,
): number {
  const bytes = state.bytes;
  let at = headersOffset + INSTRUCTION_HEADER_BYTES * count;
  if (!reaches(state, at)) return -1;
  for (let i = 0; i < count; i += 1) {
    const header = headersOffset + INSTRUCTION_HEADER_BYTES * i;
    const accountCount = byteAt(bytes, header + 1);
    const dataSize = byteAt(bytes, header + 2) | (byteAt(bytes, header + 3) << 8);
    const dataOffset = at + accountCount;
    if (!reaches(state, dataOffset + dataSize)) return -1;
    const isValid = noteInstruction(
      state,
      tips,
      i,
      byteAt(bytes, header),
      at,
      accountCount,
      dataOffset,
      dataSize,
    );
    if (!isValid) return -1;
    at = dataOffset + dataSize;
  }
  return at;
}
