/**
 * The chain's height, and how long each recent blockhash is good for.
 *
 * Both are asked for by whoever watches transactions, many times a second, so a look-up allocates
 * nothing; one in vain is noted, so that somebody finds out. The height is that of the highest
 * confirmed block: once it is above a blockhash's last height, every block that could hold such a
 * transaction is confirmed as well. What is told of it is believed where it fits (`height.ts`).
 * Blockhashes come from different sources in any order; the last 512 are known, which is more than
 * the 300 that a validator's queue holds.
 *
 * Decision: docs/decisions/0024-blockhashes-from-the-sysvar.md
 */

import { BLOCKHASHES_KEPT } from "../limits.ts";
import { createHeight, type HeightCounters } from "./height.ts";

export interface Blocks {
  /** A confirmed block has this height. Answers whether that fits what is known. */
  setHeight(height: number): boolean;
  /** A block has this hash (32 bytes, copied), good up to and with that height. */
  add(blockhash: Uint8Array, lastValidHeight: number): void;
  /** The highest confirmed block's height; null before the first two were told. */
  height(): number | null;
  /** When that was told first. */
  heightNs(): number;
  /** The last height at which a blockhash is valid; null for one that was never told. */
  lastValidHeight(blockhash: Uint8Array): number | null;
  /** Whether one was asked for that is not known, since `settle`. */
  readonly wanted: boolean;
  /** What is wanted is about to be told, as far as anybody knows it. */
  clearWanted(): void;
}

const HASH_BYTES = 32;

export function createBlocks(nowNs: () => number, counters: HeightCounters): Blocks {
  const highest = createHeight(nowNs, counters);
  const hashes = new Uint8Array(BLOCKHASHES_KEPT * HASH_BYTES);
  const heights = new Float64Array(BLOCKHASHES_KEPT);
  /** From the first 32 bits of a hash, which is random, to its place. */
  const places = new Map<number, number>();
  let next = 0;
  let filled = 0;
  // Before the first is told, all are wanted.
  let wanted = true;

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
    setHeight: highest.observe,
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
    height: () => highest.value,
    heightNs: () => highest.sinceNs,
    lastValidHeight(blockhash) {
      const place = placeOf(blockhash);
      if (place < 0) wanted = true;
      return place < 0 ? null : (heights[place] ?? null);
    },
    get wanted() {
      return wanted;
    },
    clearWanted() {
      wanted = false;
    },
  };
}

function tagOf(bytes: Uint8Array, from: number): number {
  const low = (bytes[from] ?? 0) | ((bytes[from + 1] ?? 0) << 8);
  return (low | ((bytes[from + 2] ?? 0) << 16) | ((bytes[from + 3] ?? 0) << 24)) >>> 0;
}
