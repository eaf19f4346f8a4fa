// Hot path: one `ParseState` per decoder, reused for each transaction.
/**
 * The state of the decoder while it parses a transaction once from front to back.
 *
 * The parse steps share this record instead of returning records: numbers in fixed fields cost
 * nothing to write and create no garbage. A step returns whether to continue; when it returns
 * false, it has stored its error here. Only `createParseState` builds the object, so its shape is
 * stable.
 */

import type { DecodeErrorCode } from "../core/flow.ts";

export interface ParseState {
  bytes: Uint8Array;
  size: number;
  version: -1 | 0 | 1;
  signatureOffset: number;
  signatureCount: number;
  messageOffset: number;
  /** One past the last signed byte. */
  messageEnd: number;
  readonlySigners: number;
  readonlyOthers: number;
  keysOffset: number;
  keyCount: number;
  blockhashOffset: number;
  /** Static keys and, in v0, the accounts from lookup tables. */
  accountCount: number;
  /** The highest account index of any instruction; -1 for none. */
  accountIndexMax: number;
  durableNonce: boolean;

  /** The largest transfer that counts as a tip, in lamports, whatever the minimum; -1 for none. */
  tipLamports: number;
  /**
   * A transfer that is almost a tip: the error code with the reason, -1 for none, and its lamports.
   */
  tipMiss: DecodeErrorCode;
  tipMissLamports: number;

  /** Set by ComputeBudget instructions or the v1 configuration; -1 when unset. */
  unitLimit: number;
  /**
   * The price of a compute unit: whole lamports, -1 when unset, and the remaining micro-lamports.
   */
  unitLamports: number;
  unitMicroLamports: number;
  heapBytes: number;
  loadedBytes: number;
  /** Instruction counts by the default compute units that apply without a limit. */
  builtinCalls: number;
  otherCalls: number;
  /** The v1 configuration's priority fee, in lamports. */
  feeLamports: number;

  errorCode: DecodeErrorCode;
  found: number;
  needed: number;
}

const NOTHING = new Uint8Array(0);

export function createParseState(): ParseState {
  return {
    bytes: NOTHING,
    size: 0,
    version: -1,
    signatureOffset: 0,
    signatureCount: 0,
    messageOffset: 0,
    messageEnd: 0,
    readonlySigners: 0,
    readonlyOthers: 0,
    keysOffset: 0,
    keyCount: 0,
    blockhashOffset: 0,
    accountCount: 0,
    accountIndexMax: -1,
    durableNonce: false,
    tipLamports: -1,
    tipMiss: -1,
    tipMissLamports: 0,
    unitLimit: -1,
    unitLamports: -1,
    unitMicroLamports: 0,
    heapBytes: -1,
    loadedBytes: -1,
    builtinCalls: 0,
    otherCalls: 0,
    feeLamports: 0,
    errorCode: -1,
    found: 0,
    needed: 0,
  };
}

/** Resets the state for these bytes. Offsets stay: each is written before it is read. */
export function startParse(state: ParseState, bytes: Uint8Array): void {
  state.bytes = bytes;
  state.size = bytes.length;
  state.accountIndexMax = -1;
  state.durableNonce = false;
  state.tipLamports = -1;
  state.tipMiss = -1;
  state.tipMissLamports = 0;
  state.unitLimit = -1;
  state.unitLamports = -1;
  state.unitMicroLamports = 0;
  state.heapBytes = -1;
  state.loadedBytes = -1;
  state.builtinCalls = 0;
  state.otherCalls = 0;
  state.feeLamports = 0;
  state.errorCode = -1;
}

/** Releases the bytes, which are only borrowed. */
export function finish(state: ParseState): void {
  state.bytes = NOTHING;
}

/** Stores the error and returns false, so that a step can `return fail(…)`. */
export function fail(
  state: ParseState,
  errorCode: DecodeErrorCode,
  found: number,
  needed: number,
): false {
  state.errorCode = errorCode;
  state.found = found;
  state.needed = needed;
  return false;
}

/** The byte at `at`, which the caller has checked to be in range. */
export function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

/** The unsigned 32-bit number at `at`, little-endian. */
export function u32At(bytes: Uint8Array, at: number): number {
  return (
    (byteAt(bytes, at) |
      (byteAt(bytes, at + 1) << 8) |
      (byteAt(bytes, at + 2) << 16) |
      (byteAt(bytes, at + 3) << 24)) >>>
    0
  );
}

/** The unsigned 64-bit number at `at`, capped at 2^53 - 1. */
export function u64At(bytes: Uint8Array, at: number): number {
  const high = u32At(bytes, at + 4);
  return high < 0x200000 ? high * 0x100000000 + u32At(bytes, at) : Number.MAX_SAFE_INTEGER;
}

/** Whether the 32 bytes at `a` of one array equal those at `b` of the other. */
export function sameKey(left: Uint8Array, a: number, right: Uint8Array, b: number): boolean {
  for (let i = 0; i < 32; i += 1) if (left[a + i] !== right[b + i]) return false;
  return true;
}

/** Whether the message marks a static account writable. */
export function isWritable(state: ParseState, index: number): boolean {
  if (index < state.signatureCount) return index < state.signatureCount - state.readonlySigners;
  return index < state.keyCount - state.readonlyOthers;
}
