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
 * Each thread creates its own Ring over the same memory and uses half of the calls: the writer
 * claim and publish, the reader peek and release. What was written before `publish` is visible
 * after `peek`. Nothing is copied: both threads receive the slot's offset and work in place. When
 * the ring is full, `claim` returns -1 and the caller decides what to do.
 *
 * Note: the cursors count up without end and wrap from 2147483647 to -2147483648. Both the
 * difference (as int32) and the slot (a power of two divides 2^32) stay correct across the wrap.
 */

import { withFastProperties } from "./fast-object.ts";

export interface Ring {
  /** Byte offset of the next slot to write; -1 when the ring is full. */
  claim(): number;
  /** Hands the claimed slot to the reader. */
  publish(): void;
  /** Byte offset of the next slot to read; -1 when the ring is empty. */
  peek(): number;
  /** Returns the slot that was read to the writer. */
  release(): void;
  /** Slots published and not released. */
  readonly depth: number;
}

/** Each cursor has its own cache line, so that the two threads do not contend for one. */
const LINE_BYTES = 64;

const SLOTS_OFFSET = 2 * LINE_BYTES;

/** The size of a ring in bytes. */
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
