// Hot path: the parts that all versions share.
/**
 * Header, account keys and instructions: the rules that are the same in every version.
 *
 * Rejects what Agave's `agave-transaction-view` 4.2.2 and its lock validation reject (2026-11),
 * checked in byte order. Account indexes are the exception: the account count is known only after
 * the instructions, so the highest index is recorded until then.
 */

import { DECODE_ERROR } from "../core/decode-errors.ts";
import { SIGNATURES_MAX } from "../core/limits.ts";
import {
  noteComputeBudget,
  PROGRAM_COMPUTE_BUDGET,
  PROGRAM_OTHER,
  PROGRAM_SYSTEM,
  programKind,
} from "./compute-budget.ts";
import { ACCOUNT_LOCKS_MAX, INSTRUCTIONS_MAX } from "./limits.ts";
import { byteAt, fail, isWritable, type ParseState, sameKey, u32At } from "./parse-state.ts";
import { noteTip, type TipAccounts } from "./tip.ts";

export function validateSignatureCount(state: ParseState, count: number): boolean {
  state.signatureCount = count;
  if (count === 0) return fail(state, DECODE_ERROR.signatures_none, 0, 1);
  if (count > SIGNATURES_MAX)
    return fail(state, DECODE_ERROR.signatures_too_many, count, SIGNATURES_MAX);
  return true;
}

/** Records the header's second and third byte, at `at`; the first is the signature count. */
export function noteHeader(state: ParseState, at: number): boolean {
  state.readonlySigners = byteAt(state.bytes, at);
  state.readonlyOthers = byteAt(state.bytes, at + 1);
  if (state.readonlySigners < state.signatureCount) return true;
  return fail(state, DECODE_ERROR.payer_readonly, state.readonlySigners, state.signatureCount);
}

export function validateKeyCount(state: ParseState, count: number, countMax: number): boolean {
  state.keyCount = count;
  if (count === 0) return fail(state, DECODE_ERROR.keys_none, 0, 1);
  if (count > countMax) return fail(state, DECODE_ERROR.keys_too_many, count, countMax);
  const counted = state.signatureCount + state.readonlyOthers;
  if (counted > count) return fail(state, DECODE_ERROR.keys_too_few, count, counted);
  return true;
}

const firstWords = new Uint32Array(ACCOUNT_LOCKS_MAX);

/** No key may occur twice; all keys must lie inside the bytes. */
export function validateDuplicates(state: ParseState): boolean {
  const bytes = state.bytes;
  const start = state.keysOffset;
  for (let i = 0; i < state.keyCount; i += 1) {
    const word = u32At(bytes, start + i * 32);
    for (let j = 0; j < i; j += 1) {
      if (firstWords[j] === word && sameKey(bytes, start + i * 32, bytes, start + j * 32)) {
        return fail(state, DECODE_ERROR.key_duplicate, i, j);
      }
    }
    firstWords[i] = word;
  }
  return true;
}

export function validateInstructionCount(state: ParseState, count: number): boolean {
  if (count <= INSTRUCTIONS_MAX) return true;
  return fail(state, DECODE_ERROR.instructions_too_many, count, INSTRUCTIONS_MAX);
}

/** Records instruction `index`, all of which lies inside the bytes. */
export function noteInstruction(
  state: ParseState,
  tips: TipAccounts,
  index: number,
  programIndex: number,
  accountsOffset: number,
  accountCount: number,
  dataOffset: number,
  dataSize: number,
): boolean {
  if (programIndex === 0) return fail(state, DECODE_ERROR.program_is_payer, index, 1);
  if (programIndex >= state.keyCount) {
    return fail(state, DECODE_ERROR.program_index, programIndex, state.keyCount);
  }
  const bytes = state.bytes;
  let highest = state.accountIndexMax;
  for (let at = accountsOffset; at < accountsOffset + accountCount; at += 1) {
    const account = byteAt(bytes, at);
    if (account > highest) highest = account;
  }
  state.accountIndexMax = highest;

  const kind = programKind(bytes, state.keysOffset + programIndex * 32);
  if (kind === PROGRAM_OTHER) state.otherCalls += 1;
  else state.builtinCalls += 1;
  if (kind === PROGRAM_SYSTEM) {
    if (index === 0) noteNonce(state, accountsOffset, accountCount, dataOffset, dataSize);
    noteTip(state, tips, accountsOffset, accountCount, dataOffset, dataSize);
  } else if (kind === PROGRAM_COMPUTE_BUDGET && state.version !== 1) {
    return noteComputeBudget(state, index, dataOffset, dataSize);
  }
  return true;
}

/** System Program instruction AdvanceNonceAccount. `system-interface`, 2026-11. */
const ADVANCE_NONCE = 4;

/**
 * A transaction whose first instruction advances a nonce uses that nonce as its blockhash. The
 * nonce account must be a writable static key. Agave `svm-transaction/src/svm_message.rs`, 2026-11.
 */
function noteNonce(
  state: ParseState,
  accountsOffset: number,
  accountCount: number,
  dataOffset: number,
  dataSize: number,
): void {
  if (dataSize < 4 || accountCount === 0) return;
  if (u32At(state.bytes, dataOffset) !== ADVANCE_NONCE) return;
  const nonce = byteAt(state.bytes, accountsOffset);
  state.durableNonce = nonce < state.keyCount && isWritable(state, nonce);
}

export function validateAccountIndexes(state: ParseState, accountCount: number): boolean {
  if (state.accountIndexMax < accountCount) return true;
  return fail(state, DECODE_ERROR.account_index, state.accountIndexMax, accountCount);
}

/** Whether the transaction ends at `end`, the end of its last part. */
export function validateEnd(state: ParseState, end: number): boolean {
  if (end === state.size) return true;
  const errorCode = end < state.size ? DECODE_ERROR.trailing_bytes : DECODE_ERROR.truncated;
  return fail(state, errorCode, state.size, end);
}

/** Whether the bytes extend to `end`. */
export function reaches(state: ParseState, end: number): boolean {
  return end <= state.size || fail(state, DECODE_ERROR.truncated, state.size, end);
}
