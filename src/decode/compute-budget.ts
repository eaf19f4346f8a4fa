// Hot path: called for each instruction.
/**
 * Compute budget: the settings of a transaction, and its fee above the base fee.
 *
 * Leaders drop a legacy or v0 transaction with a malformed or repeated ComputeBudget instruction;
 * in v1 the settings are in the message's configuration and such instructions are ignored. The fee
 * is exact where the bytes contain the compute unit limit; otherwise it uses the network's default
 * per instruction, which counts the Vote program as built-in although a feature gate may change
 * that.
 */

import { DECODE_ERROR } from "../core/decode-errors.ts";
import { decodeBase58 } from "../core/encoding.ts";
import { COMPUTE_UNITS_MAX, HEAP_BYTES_MAX, HEAP_BYTES_MIN } from "./limits.ts";
import { byteAt, fail, type ParseState, sameKey, u32At } from "./parse-state.ts";

/** How the decoder treats a program. */
export const PROGRAM_OTHER = 0;
export const PROGRAM_BUILTIN = 1;
export const PROGRAM_SYSTEM = 2;
export const PROGRAM_COMPUTE_BUDGET = 3;

/** Built-in programs by cost. Agave `builtins-default-costs/src/lib.rs`, 2026-11. */
const BUILTINS: readonly (readonly [string, number])[] = [
  ["11111111111111111111111111111111", PROGRAM_SYSTEM],
  ["ComputeBudget111111111111111111111111111111", PROGRAM_COMPUTE_BUDGET],
  ["Vote111111111111111111111111111111111111111", PROGRAM_BUILTIN],
  ["BPFLoader1111111111111111111111111111111111", PROGRAM_BUILTIN],
  ["BPFLoader2111111111111111111111111111111111", PROGRAM_BUILTIN],
  ["BPFLoaderUpgradeab1e11111111111111111111111", PROGRAM_BUILTIN],
  ["LoaderV411111111111111111111111111111111111", PROGRAM_BUILTIN],
  ["KeccakSecp256k11111111111111111111111111111", PROGRAM_BUILTIN],
  ["Ed25519SigVerify111111111111111111111111111", PROGRAM_BUILTIN],
];

const keys = new Uint8Array(BUILTINS.length * 32);
const words = new Uint32Array(BUILTINS.length);
const kinds = new Uint8Array(BUILTINS.length);
for (const [i, [address, kind]] of BUILTINS.entries()) {
  const key = decodeBase58(address, 32);
  if (key === null) throw new RangeError(`${address} is not an address`);
  keys.set(key, i * 32);
  words[i] = u32At(key, 0);
  kinds[i] = kind;
}

/** The kind of the program whose key is at `at`. */
export function programKind(bytes: Uint8Array, at: number): number {
  const word = u32At(bytes, at);
  for (let i = 0; i < words.length; i += 1) {
    if (words[i] === word && sameKey(bytes, at, keys, i * 32)) return kinds[i] ?? PROGRAM_OTHER;
  }
  return PROGRAM_OTHER;
}

/** ComputeBudget instruction tags. Crate `solana-compute-budget-interface` 3.0.0, 2026-11. */
const REQUEST_HEAP_FRAME = 1;
const SET_UNIT_LIMIT = 2;
const SET_UNIT_PRICE = 3;
const SET_LOADED_BYTES = 4;

/** Records one ComputeBudget instruction; bytes after its value are ignored, as leaders do. */
export function noteComputeBudget(
  state: ParseState,
  index: number,
  dataOffset: number,
  dataSize: number,
): boolean {
  const bytes = state.bytes;
  const kind = dataSize === 0 ? 0 : byteAt(bytes, dataOffset);
  if (kind < REQUEST_HEAP_FRAME || kind > SET_LOADED_BYTES) {
    return fail(state, DECODE_ERROR.compute_budget_malformed, index, 0);
  }
  if (dataSize < (kind === SET_UNIT_PRICE ? 9 : 5)) {
    return fail(state, DECODE_ERROR.compute_budget_malformed, index, 0);
  }
  if (isSet(state, kind)) return fail(state, DECODE_ERROR.compute_budget_duplicate, index, kind);
  const at = dataOffset + 1;
  if (kind === SET_UNIT_PRICE) notePrice(state, at);
  else if (kind === SET_UNIT_LIMIT) state.unitLimit = u32At(bytes, at);
  else if (kind === REQUEST_HEAP_FRAME) state.heapBytes = u32At(bytes, at);
  else state.loadedBytes = u32At(bytes, at);
  return true;
}

function isSet(state: ParseState, kind: number): boolean {
  if (kind === SET_UNIT_PRICE) return state.unitLamports !== -1;
  if (kind === SET_UNIT_LIMIT) return state.unitLimit !== -1;
  if (kind === REQUEST_HEAP_FRAME) return state.heapBytes !== -1;
  return state.loadedBytes !== -1;
}

const MICRO = 1_000_000;
/** 2^32 micro-lamports in whole lamports, and the remaining micro-lamports. */
const WORD_LAMPORTS = 4_294;
const WORD_MICRO_LAMPORTS = 967_296;

/** Splits the 64-bit price into 32-bit halves, so that every step stays exact in doubles. */
function notePrice(state: ParseState, at: number): void {
  const high = u32At(state.bytes, at + 4);
  const micro = high * WORD_MICRO_LAMPORTS + u32At(state.bytes, at);
  const carried = Math.floor(micro / MICRO);
  state.unitLamports = high * WORD_LAMPORTS + carried;
  state.unitMicroLamports = micro - carried * MICRO;
}

/** Whether the requested heap size is one that leaders grant. */
export function validateHeap(state: ParseState): boolean {
  const heap = state.heapBytes;
  if (heap === -1) return true;
  if (heap >= HEAP_BYTES_MIN && heap <= HEAP_BYTES_MAX && heap % 1024 === 0) return true;
  return fail(state, DECODE_ERROR.heap_size, heap, HEAP_BYTES_MIN);
}

/** Validates the ComputeBudget settings after all instructions have been read. */
export function validateComputeBudget(state: ParseState): boolean {
  if (!validateHeap(state)) return false;
  if (state.loadedBytes === 0) return fail(state, DECODE_ERROR.loaded_accounts_size, 0, 1);
  return true;
}

/** Compute units per instruction when no limit is set. `execution_budget.rs`, 2026-11. */
const UNITS_BUILTIN = 3_000;
const UNITS_OTHER = 200_000;

/** ceil(price * limit / 10^6) of a legacy or v0 transaction, in lamports, capped at 2^53 - 1. */
export function computeBudgetFee(state: ParseState): number {
  if (state.unitLamports === -1) return 0;
  const asked =
    state.unitLimit === -1
      ? state.builtinCalls * UNITS_BUILTIN + state.otherCalls * UNITS_OTHER
      : state.unitLimit;
  const limit = Math.min(asked, COMPUTE_UNITS_MAX);
  const fee = state.unitLamports * limit + Math.ceil((state.unitMicroLamports * limit) / MICRO);
  return Math.min(fee, Number.MAX_SAFE_INTEGER);
}
