// Hot path: reads and writes in place; only the validation result is allocated.
/**
 * The memory shared by the main thread and one worker thread, and the layout of a validation result
 * in it.
 *
 *     wake flag one word for all workers: ARMED while the main thread waits to be woken
 *     channel   ┌ words: asleep, stop, ready ┬ counters ┬ requests ───────┬ replies ─────────┐
 *               │ 64 bytes                   │ 64       │ ring: main ▶ w. │ ring: w. ▶ main  │
 *               └────────────────────────────┴──────────┴─────────────────┴──────────────────┘
 *     request   size (float64), then the transaction's bytes
 *     reply     eleven float64; the worker keeps the order, so no number identifies the transaction
 *
 * Waking is the same on both sides: a thread about to sleep sets its word, checks its ring once
 * more and waits for the word to change; a thread that has written to the ring clears the word, and
 * wakes the other only when the word was set. So a wake-up can be spurious but is never lost, and a
 * batch costs one.
 */

import type { ValidationResult } from "../../core/flow.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../../core/limits.ts";
import { createRing, type Ring, ringBytes } from "../../runtime/ring.ts";

/** Indices of the words of a channel. */
export const ASLEEP = 0;
export const STOP = 1;
export const READY = 2;

/** The worker's own counters, which the main thread reads at scrape: see `Channel.counters`. */
const COUNTERS_OFFSET = 64;
export const COUNTERS = 5;
const REQUESTS_OFFSET = 128;

/** Offset of the transaction in its request slot. */
export const REQUEST_HEAD_BYTES = 8;
const REQUEST_SLOT_BYTES = REQUEST_HEAD_BYTES + V1_TRANSACTION_BYTES_MAX;
const REPLY_SLOT_BYTES = 96;

/** One side's view of a channel. */
export interface Channel {
  readonly int32: Int32Array<SharedArrayBuffer>;
  /** verified, invalid, keysFound, keysMade, keysEvicted; written by the worker, approximate. */
  readonly counters: Float64Array<SharedArrayBuffer>;
  readonly requests: Ring;
  readonly replies: Ring;
  /** The complete channel; ring offsets index it, or `numbers` after division by 8. */
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  readonly numbers: Float64Array<SharedArrayBuffer>;
}

/** New memory for a channel whose rings have `slots` slots each. */
export function channelMemory(slots: number): SharedArrayBuffer {
  const requests = ringBytes(slots, REQUEST_SLOT_BYTES);
  return new SharedArrayBuffer(REQUESTS_OFFSET + requests + ringBytes(slots, REPLY_SLOT_BYTES));
}

/** A view of `memory`, which `channelMemory` created with the same `slots`. */
export function openChannel(memory: SharedArrayBuffer, slots: number): Channel {
  const repliesOffset = REQUESTS_OFFSET + ringBytes(slots, REQUEST_SLOT_BYTES);
  return {
    int32: new Int32Array(memory, 0, 3),
    counters: new Float64Array(memory, COUNTERS_OFFSET, COUNTERS),
    requests: createRing(memory, REQUESTS_OFFSET, slots, REQUEST_SLOT_BYTES),
    replies: createRing(memory, repliesOffset, slots, REPLY_SLOT_BYTES),
    bytes: new Uint8Array(memory),
    numbers: new Float64Array(memory),
  };
}

/** Writes a validation result for `readValidation`. `offset` is a ring offset in bytes. */
export function writeValidation(
  numbers: Float64Array,
  offset: number,
  validation: ValidationResult,
): void {
  const at = offset / 8;
  if (validation.kind === "rejected") {
    numbers[at] = 0;
    numbers[at + 1] = validation.errorCode;
    numbers[at + 2] = validation.found;
    numbers[at + 3] = validation.needed;
    return;
  }
  numbers[at] = 1;
  numbers[at + 1] = validation.version;
  numbers[at + 2] = validation.signatureOffset;
  numbers[at + 3] = validation.signatureCount;
  numbers[at + 4] = validation.messageOffset;
  numbers[at + 5] = validation.messageSize;
  numbers[at + 6] = validation.keysOffset;
  numbers[at + 7] = validation.blockhashOffset;
  numbers[at + 8] = validation.durableNonce ? 1 : 0;
  numbers[at + 9] = validation.tipLamports;
  numbers[at + 10] = validation.priorityFeeLamports;
}

/** Reads the validation result that `writeValidation` wrote. */
export function readValidation(numbers: Float64Array, offset: number): ValidationResult {
  const at = offset / 8;
  if (numbers[at] === 0) {
    return {
      kind: "rejected",
      errorCode: numbers[at + 1] ?? 0,
      found: numbers[at + 2] ?? 0,
      needed: numbers[at + 3] ?? 0,
    };
  }
  const version = numbers[at + 1];
  return {
    kind: "accepted",
    version: version === 0 || version === 1 ? version : -1,
    signatureOffset: numbers[at + 2] ?? 0,
    signatureCount: numbers[at + 3] ?? 0,
    messageOffset: numbers[at + 4] ?? 0,
    messageSize: numbers[at + 5] ?? 0,
    keysOffset: numbers[at + 6] ?? 0,
    blockhashOffset: numbers[at + 7] ?? 0,
    durableNonce: numbers[at + 8] === 1,
    tipLamports: numbers[at + 9] ?? 0,
    priorityFeeLamports: numbers[at + 10] ?? 0,
  };
}
