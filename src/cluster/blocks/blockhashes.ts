/**
 * The last valid height of each recent blockhash.
 *
 * Transaction tracking reads it many times a second, so a lookup allocates nothing. Blockhashes
 * arrive from different sources in any order; the last 512 are kept, more than the 300 in a
 * validator's queue.
 */

import { BLOCKHASHES_KEPT } from "../limits.ts";

export interface Blockhashes {
  /** Adds a blockhash (32 bytes, copied), valid up to and including that height. */
  add(blockhash: Uint8Array, lastValidHeight: number): void;
  /** The last height at which a blockhash is valid; null for an unknown one. */
  lastValidHeight(blockhash: Uint8Array): number | null;
}

const HASH_BYTES = 32;

export function createBlockhashes(): Blockhashes {
  const hashes = new Uint8Array(BLOCKHASHES_KEPT * HASH_BYTES);
  const heights = new Float64Array(BLOCKHASHES_KEPT);
  /** Maps the first 32 bits of a hash, which are random, to its index. */
  const places = new Map<number, number>();
  let next = 0;
  let filled = 0;

  function sameAt(place: number, blockhash: Uint8Array): boolean {
    const from = place * HASH_BYTES;
    for (let index = 0; index < HASH_BYTES; index += 1) {
      if (hashes[from + index] !== blockhash[index]) return false;
    }
    return true;
  }

  function placeOf(blockhash: Uint8Array): number {
    if (blockhash.length !== HASH_BYTES) return -1;
    const place = places.get(tagOf(blockhash, 0));
    return place !== undefined && sameAt(place, blockhash) ? place : -1;
  }

  return {
    add(blockhash, lastValidHeight) {
      if (blockhash.length !== HASH_BYTES) return;
      const known = placeOf(blockhash);
      if (known >= 0) {
        heights[known] = lastValidHeight;
        return;
      }
      const from = next * HASH_BYTES;
      if (filled === BLOCKHASHES_KEPT) {
        const old = tagOf(hashes, from);
        if (places.get(old) === next) places.delete(old);
      } else filled += 1;
      hashes.set(blockhash, from);
      heights[next] = lastValidHeight;
      places.set(tagOf(blockhash, 0), next);
      next = (next + 1) % BLOCKHASHES_KEPT;
    },
    lastValidHeight(blockhash) {
      const place = placeOf(blockhash);
      return place < 0 ? null : (heights[place] ?? null);
    },
  };
}

function tagOf(bytes: Uint8Array, from: number): number {
  const low = (bytes[from] ?? 0) | ((bytes[from + 1] ?? 0) << 8);
  return (low | ((bytes[from + 2] ?? 0) << 16) | ((bytes[from + 3] ?? 0) << 24)) >>> 0;
}
