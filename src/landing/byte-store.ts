/**
 * Bytes of transactions in flight, in one preallocated buffer.
 *
 * Transactions end in any order, so a ring would be blocked by its oldest entry; here each takes as
 * many 512-byte blocks as it needs, linked, and frees them when it ends. Nothing fragments, because
 * linked blocks need not be contiguous.
 *
 *     first ─▶ [512] ─▶ [512] ─▶ [208 used] ─▶ NONE
 *
 * Hot path: `put` and `free` copy and link, and allocate nothing but short-lived views.
 */

/** No block, no row. */
export const NONE = -1;

const BLOCK_BYTES = 512;

export class ByteStore {
  readonly #arena: Uint8Array;
  readonly #next: Int32Array;
  #free = 0;
  #freeBlocks: number;

  /** Room for at least `bytesMax` bytes if they were one transaction. */
  constructor(bytesMax: number) {
    const blocks = Math.ceil(bytesMax / BLOCK_BYTES);
    this.#arena = new Uint8Array(blocks * BLOCK_BYTES);
    this.#next = Int32Array.from({ length: blocks }, (_, block) =>
      block + 1 === blocks ? NONE : block + 1,
    );
    this.#freeBlocks = blocks;
  }

  hasRoomFor(size: number): boolean {
    return blocksOf(size) <= this.#freeBlocks;
  }

  /** Copies the bytes and returns the first block; the caller has checked `hasRoomFor`. */
  put(bytes: Uint8Array): number {
    const first = this.#free;
    let block = first;
    let last = NONE;
    for (let from = 0; from < bytes.length; from += BLOCK_BYTES) {
      const to = Math.min(from + BLOCK_BYTES, bytes.length);
      this.#arena.set(
        from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to),
        block * BLOCK_BYTES,
      );
      this.#freeBlocks -= 1;
      last = block;
      block = this.#next[block] ?? NONE;
    }
    if (last === NONE) return NONE;
    this.#free = block;
    this.#next[last] = NONE;
    return first;
  }

  /** Copies `size` bytes starting at `from` to the start of `into`. */
  read(first: number, from: number, size: number, into: Uint8Array): void {
    let block = first;
    for (let end = BLOCK_BYTES; end <= from; end += BLOCK_BYTES) block = this.#next[block] ?? NONE;
    let at = from % BLOCK_BYTES;
    for (let written = 0; written < size && block !== NONE; at = 0) {
      const start = block * BLOCK_BYTES + at;
      const length = Math.min(BLOCK_BYTES - at, size - written);
      into.set(this.#arena.subarray(start, start + length), written);
      written += length;
      block = this.#next[block] ?? NONE;
    }
  }

  /** Frees all linked blocks. */
  free(first: number): void {
    let block = first;
    while (block !== NONE) {
      const next = this.#next[block] ?? NONE;
      this.#next[block] = this.#free;
      this.#free = block;
      this.#freeBlocks += 1;
      block = next;
    }
  }
}

function blocksOf(size: number): number {
  return Math.ceil(size / BLOCK_BYTES);
}
