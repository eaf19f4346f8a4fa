// Hot path: a call is one or two atomic loads or stores, and allocates nothing.
/**
 * A ring of fixed slots in shared memory, from one writing thread to one reading thread.
 *
 *            tail (next to read)      head (next to write)
 *             │                        │
 *     ┌─────┬─▼───┬─────┬─────┬─────┬──▼──┬─────┬─────┐
 *     │     │  ▓  │  ▓  │  ▓  │  ▓  │     │     │     │   depth = head - tail = 4
 *     └─────┴─────┴─────┴─────┴─────┴─────┴─────┴─────┘
 *     slot 0 = cursor & (slots - 1)             slots: a power of two
 *
 * Each side makes its own Ring over the same memory, and uses only its half of the calls: claim
 * and publish to write, peek and release to read. What was written before `publish` is seen after
 * `peek`. Nothing is copied here: both sides are told where the slot starts and work in place.
 * When the ring is full `claim` answers -1, and what happens then is the caller's rule.
 *
 * The surprise: the cursors count up for ever and pass from 2147483647 to -2147483648. Both the
 * difference (as int32) and the slot (a power of two divides 2^32) stay right across that step.
 */

import { withFastProperties } from "./fast-object.ts";

export interface Ring {
  /** Where the next slot to write starts in the buffer, in bytes; -1 when the ring is full. */
  claim(): number;
  /** Hands the claimed slot to the reader. */
  publish(): void;
  /** Where the next slot to read starts in the buffer, in bytes; -1 when the ring is empty. */
  peek(): number;
  /** Gives the slot that was read back to the writer. */
  release(): void;
  /** Slots that were published and not released. */
  readonly depth: number;
}

/** Each cursor has a cache line to itself, so that the two threads do not fight over one. */
const LINE_BYTES = 64;

const SLOTS_OFFSET = 2 * LINE_BYTES;

/** How much memory a ring takes, in bytes. */
export function ringBytes(slots: number, slotBytes: number): number {
  return SLOTS_OFFSET + slots * slotBytes;
}

/**
 * One side of the ring that starts at `byteOffset` of `buffer`: the head cursor, 64 bytes on the
 * tail cursor, 64 bytes on the slots. Fresh zeroed memory is an empty ring. Throws a RangeError
 * unless `slots` is a power of two, and offset and `slotBytes` are multiples of 8, and it all fits.
 */
export function createRing(
  buffer: SharedArrayBuffer,
  byteOffset: number,
  slots: number,
  slotBytes: number,
): Ring {
  if (!Number.isInteger(Math.log2(slots)) || slots > 2 ** 30) {
    throw new RangeError(`a ring has a power of two of slots, at most 2^30, not ${slots}`);
  }
  if (byteOffset % 8 !== 0 || slotBytes % 8 !== 0) {
    throw new RangeError(`a ring lies on multiples of 8 bytes, not ${byteOffset}, ${slotBytes}`);
  }
  if (byteOffset + ringBytes(slots, slotBytes) > buffer.byteLength) {
    throw new RangeError(`a ring of ${slots} slots does not fit in ${buffer.byteLength} bytes`);
  }
  const head = new Int32Array(buffer, byteOffset, 1);
  const tail = new Int32Array(buffer, byteOffset + LINE_BYTES, 1);
  const start = byteOffset + SLOTS_OFFSET;
  const mask = slots - 1;

  return withFastProperties({
    claim() {
      const cursor = Atomics.load(head, 0);
      if (((cursor - Atomics.load(tail, 0)) | 0) === slots) return -1;
      return start + (cursor & mask) * slotBytes;
    },
    publish() {
      Atomics.add(head, 0, 1);
    },
    peek() {
      const cursor = Atomics.load(tail, 0);
      if (cursor === Atomics.load(head, 0)) return -1;
      return start + (cursor & mask) * slotBytes;
    },
    release() {
      Atomics.add(tail, 0, 1);
    },
    get depth() {
      return (Atomics.load(head, 0) - Atomics.load(tail, 0)) | 0;
    },
  });
}
