// Hot path: called for each System Program instruction.
/**
 * The tip: one System Program Transfer from a writable signer to a writable static account that is
 * a tip account. Each transfer counts alone; transfers are not summed.
 *
 * A transfer that almost qualifies is recorded with the missing condition, because "no tip" alone
 * does not help a developer who did tip.
 */

import { DECODE_ERROR } from "../core/decode-errors.ts";
import { byteAt, fail, isWritable, type ParseState, sameKey, u32At, u64At } from "./parse-state.ts";

/** A small set of 32-byte keys, with a membership test at an offset. */
export interface TipAccounts {
  /** The concatenated keys. */
  readonly keys: Uint8Array;
  /** The first four bytes of each, which exclude almost all other keys. */
  readonly words: Uint32Array;
}

/** Throws for a key that is not 32 bytes long: that is a configuration error. */
export function createTipAccounts(accounts: readonly Uint8Array[]): TipAccounts {
  const keys = new Uint8Array(accounts.length * 32);
  for (const [i, account] of accounts.entries()) {
    if (account.length !== 32) throw new RangeError(`a tip account has ${account.length} bytes`);
    keys.set(account, i * 32);
  }
  return { keys, words: Uint32Array.from(accounts, (account) => u32At(account, 0)) };
}

function isTipAccount(tips: TipAccounts, bytes: Uint8Array, at: number): boolean {
  const word = u32At(bytes, at);
  for (let i = 0; i < tips.words.length; i += 1) {
    if (tips.words[i] === word && sameKey(bytes, at, tips.keys, i * 32)) return true;
  }
  return false;
}

/** System Program instruction 2. `system-interface/src/instruction.rs`, 2026-11. */
const TRANSFER = 2;
/** u32 index, u64 lamports; the program ignores what follows. */
const TRANSFER_BYTES = 12;

/** Records the tip, if the System Program instruction is one or almost qualifies. */
export function noteTip(
  state: ParseState,
  tips: TipAccounts,
  accountsOffset: number,
  accountCount: number,
  dataOffset: number,
  dataSize: number,
): void {
  const bytes = state.bytes;
  if (dataSize < TRANSFER_BYTES || accountCount < 2) return;
  if (u32At(bytes, dataOffset) !== TRANSFER) return;
  const from = byteAt(bytes, accountsOffset);
  const to = byteAt(bytes, accountsOffset + 1);
  const lamports = u64At(bytes, dataOffset + 4);
  if (to >= state.keyCount) {
    if (state.tipMiss === -1) noteMiss(state, DECODE_ERROR.tip_in_table, lamports);
    return;
  }
  if (!isTipAccount(tips, bytes, state.keysOffset + to * 32)) return;
  if (!isWritable(state, to)) noteMiss(state, DECODE_ERROR.tip_account_readonly, lamports);
  else if (from >= state.signatureCount || !isWritable(state, from)) {
    noteMiss(state, DECODE_ERROR.tip_source_unfit, lamports);
  } else if (lamports > state.tipLamports) state.tipLamports = lamports;
}

function noteMiss(state: ParseState, errorCode: number, lamports: number): void {
  state.tipMiss = errorCode;
  state.tipMissLamports = lamports;
}

/** Whether the largest tip reaches the minimum; otherwise stores the most specific error. */
export function validateTip(state: ParseState, lamportsMin: number): boolean {
  if (state.tipLamports >= lamportsMin) return true;
  if (state.tipLamports >= 0)
    return fail(state, DECODE_ERROR.tip_too_low, state.tipLamports, lamportsMin);
  if (state.tipMiss !== -1) return fail(state, state.tipMiss, state.tipMissLamports, lamportsMin);
  return fail(state, DECODE_ERROR.tip_absent, 0, lamportsMin);
}
