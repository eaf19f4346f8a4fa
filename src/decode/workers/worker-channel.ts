// Hot path: reads and writes in place; a verdict is the one thing that is allocated.
/**
 * The memory that the main thread and one worker thread share, and how a verdict lies in it.
 *
 *     bell      one word for all workers: ARMED while the main thread waits to be woken
 *     channel   ┌ words: asleep, stop, ready ┬ figures ┬ requests ───────┬ replies ─────────┐
 *               │ 64 bytes                   │ 64      │ ring: main ▶ w. │ ring: w. ▶ main  │
 *               └────────────────────────────┴─────────┴─────────────────┴──────────────────┘
 *     request   size (float64), then the transaction's bytes
 *     reply     eleven float64; the worker keeps the order, so no number names the transaction
 *
 * Waking is the same on both sides: who is about to sleep sets its word, looks into its ring once
 * more and waits for the word to change; who has put something into the ring clears the word, and
 * wakes the other only when the word was set. So a wake can be spurious but is never lost, and a
 * batch costs one.
 */

import type { ValidationResult } from "../../core/flow.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../../core/limits.ts";
import { createRing, type Ring, ringBytes } from "../../runtime/ring.ts";

/** Words of a channel. */
export const ASLEEP = 0;
export const STOP = 1;
export const READY = 2;

/** The worker's own counters, as the main thread reads them at scrape: see `Figures`. */
const FIGURES_OFFSET = 64;
export const FIGURE_COUNT = 5;
const REQUESTS_OFFSET = 128;

/** Where the transaction starts in its request slot. */
export const REQUEST_HEAD_BYTES = 8;
const REQUEST_SLOT_BYTES = REQUEST_HEAD_BYTES + V1_TRANSACTION_BYTES_MAX;
const REPLY_SLOT_BYTES = 96;

/** One side's view of a channel. */
export interface Channel {
  readonly int32: Int32Array<SharedArrayBuffer>;
  /** verified, invalid, keysFound, keysMade, keysEvicted; written by the worker, approximate. */
  readonly figures: Float64Array<SharedArrayBuffer>;
  readonly requests: Ring;
  readonly replies: Ring;
  /** The whole channel; ring offsets are indices here, or in `numbers` after division by 8. */
  readonly bytes: Uint8Array<SharedArrayBuffer>;
  readonly numbers: Float64Array<SharedArrayBuffer>;
}

/** Fresh memory for a channel whose rings have `slots` slots each. */
export function channelMemory(slots: number): SharedArrayBuffer {
  const requests = ringBytes(slots, REQUEST_SLOT_BYTES);
  return new SharedArrayBuffer(REQUESTS_OFFSET + requests + ringBytes(slots, REPLY_SLOT_BYTES));
}

/** The view of `memory`, which `channelMemory` made with the same `slots`. */
export function openChannel(memory: SharedArrayBuffer, slots: number): Channel {
  const repliesOffset = REQUESTS_OFFSET + ringBytes(slots, REQUEST_SLOT_BYTES);
  return {
    int32: new Int32Array(memory, 0, 3),
    figures: new Float64Array(memory, FIGURES_OFFSET, FIGURE_COUNT),
    requests: createRing(memory, REQUESTS_OFFSET, slots, REQUEST_SLOT_BYTES),
    replies: createRing(memory, repliesOffset, slots, REPLY_SLOT_BYTES),
    bytes: new Uint8Array(memory),
    numbers: new Float64Array(memory),
  };
}

/** Puts a verdict where `readValidation` finds it. `offset` is in bytes, as rings tell it. */
export function writeValidation(
  numbers: Float64Array,
  offset: number,
  validation: ValidationResult,
): void {
  const at = offset / 8;
  if (validation.kind === "refused") {
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

/** The verdict that `writeValidation` put there. */
export function readValidation(numbers: Float64Array, offset: number): ValidationResult {
  const at = offset / 8;
  if (numbers[at] === 0) {
    return {
      kind: "refused",
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
