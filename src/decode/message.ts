// Hot path: the parts that all versions share.
/**
 * Header, account keys and instructions: the rules that are the same in every version.
 *
 * What is refused here is what Agave's `agave-transaction-view` 4.2.2 and its lock validation
 * refuse (2026-11), judged in the order of the bytes. Account indexes are the exception: how many
 * accounts there are is known only behind the instructions, so the highest is kept until then.
 */

import { FAULT } from "../core/faults.ts";
import { SIGNATURES_MAX } from "../core/limits.ts";
import {
  noteComputeBudget,
  PROGRAM_COMPUTE_BUDGET,
  PROGRAM_OTHER,
  PROGRAM_SYSTEM,
  programKind,
} from "./compute-budget.ts";
import { INSTRUCTIONS_MAX, V1_KEYS_MAX } from "./limits.ts";
import { byteAt, fail, isWritable, type Scan, sameKey, u32At } from "./scan.ts";
import { noteTip, type TipAccounts } from "./tip.ts";

export function judgeSignatureCount(scan: Scan, count: number): boolean {
  scan.signatureCount = count;
  if (count === 0) return fail(scan, FAULT.signatures_none, 0, 1);
  if (count > SIGNATURES_MAX) return fail(scan, FAULT.signatures_too_many, count, SIGNATURES_MAX);
  return true;
}

/** The header's second and third byte, which stand at `at`; the first is the signature count. */
export function noteHeader(scan: Scan, at: number): boolean {
  scan.readonlySigners = byteAt(scan.bytes, at);
  scan.readonlyOthers = byteAt(scan.bytes, at + 1);
  if (scan.readonlySigners < scan.signatureCount) return true;
  return fail(scan, FAULT.payer_readonly, scan.readonlySigners, scan.signatureCount);
}

export function judgeKeyCount(scan: Scan, count: number, countMax: number): boolean {
  scan.keyCount = count;
  if (count === 0) return fail(scan, FAULT.keys_none, 0, 1);
  if (count > countMax) return fail(scan, FAULT.keys_too_many, count, countMax);
  const counted = scan.signatureCount + scan.readonlyOthers;
  if (counted > count) return fail(scan, FAULT.keys_too_few, count, counted);
  return true;
}

const firstWords = new Uint32Array(V1_KEYS_MAX);

/** No key may stand twice; all keys must lie inside the bytes. */
export function judgeDuplicates(scan: Scan): boolean {
  const bytes = scan.bytes;
  const start = scan.keysOffset;
  for (let i = 0; i < scan.keyCount; i += 1) {
    const word = u32At(bytes, start + i * 32);
    for (let j = 0; j < i; j += 1) {
      if (firstWords[j] === word && sameKey(bytes, start + i * 32, bytes, start + j * 32)) {
        return fail(scan, FAULT.key_duplicate, i, j);
      }
    }
    firstWords[i] = word;
  }
  return true;
}

export function judgeInstructionCount(scan: Scan, count: number): boolean {
  if (count <= INSTRUCTIONS_MAX) return true;
  return fail(scan, FAULT.instructions_too_many, count, INSTRUCTIONS_MAX);
}

/** Notes instruction `index`, all of which lies inside the bytes. */
export function noteInstruction(
  scan: Scan,
  tips: TipAccounts,
  index: number,
  programIndex: number,
  accountsOffset: number,
  accountCount: number,
  dataOffset: number,
  dataSize: number,
): boolean {
  if (programIndex === 0) return fail(scan, FAULT.program_is_payer, index, 1);
  if (programIndex >= scan.keyCount) {
    return fail(scan, FAULT.program_index, programIndex, scan.keyCount);
  }
  const bytes = scan.bytes;
  let highest = scan.accountIndexMax;
  for (let at = accountsOffset; at < accountsOffset + accountCount; at += 1) {
    const account = byteAt(bytes, at);
    if (account > highest) highest = account;
  }
  scan.accountIndexMax = highest;

  const kind = programKind(bytes, scan.keysOffset + programIndex * 32);
  if (kind === PROGRAM_OTHER) scan.otherCalls += 1;
  else scan.builtinCalls += 1;
  if (kind === PROGRAM_SYSTEM) {
    if (index === 0) noteNonce(scan, accountsOffset, accountCount, dataOffset, dataSize);
    noteTip(scan, tips, accountsOffset, accountCount, dataOffset, dataSize);
  } else if (kind === PROGRAM_COMPUTE_BUDGET && scan.version !== 1) {
    return noteComputeBudget(scan, index, dataOffset, dataSize);
  }
  return true;
}

/** System Program instruction AdvanceNonceAccount. `system-interface`, 2026-11. */
const ADVANCE_NONCE = 4;

/**
 * A transaction whose first instruction advances a nonce holds that nonce for its blockhash. The
 * nonce account must be a writable static key. Agave `svm-transaction/src/svm_message.rs`, 2026-11.
 */
function noteNonce(
  scan: Scan,
  accountsOffset: number,
  accountCount: number,
  dataOffset: number,
  dataSize: number,
): void {
  if (dataSize < 4 || accountCount === 0) return;
  if (u32At(scan.bytes, dataOffset) !== ADVANCE_NONCE) return;
  const nonce = byteAt(scan.bytes, accountsOffset);
  scan.durableNonce = nonce < scan.keyCount && isWritable(scan, nonce);
}

export function judgeAccountIndexes(scan: Scan, accountCount: number): boolean {
  if (scan.accountIndexMax < accountCount) return true;
  return fail(scan, FAULT.account_index, scan.accountIndexMax, accountCount);
}

/** Whether the transaction ends at `end`, where its last part does. */
export function judgeEnd(scan: Scan, end: number): boolean {
  if (end === scan.size) return true;
  const fault = end < scan.size ? FAULT.trailing_bytes : FAULT.truncated;
  return fail(scan, fault, scan.size, end);
}

/** Whether the bytes reach to `end`. */
export function reaches(scan: Scan, end: number): boolean {
  return end <= scan.size || fail(scan, FAULT.truncated, scan.size, end);
}
