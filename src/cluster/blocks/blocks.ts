/**
 * The cluster's block height, and the last valid height of each recent blockhash.
 *
 * Transaction tracking reads both many times a second, so a lookup allocates nothing; a failed
 * lookup sets `wanted`, so that the block watcher requests the list. The height is that of the
 * highest confirmed block: once it exceeds a blockhash's last valid height, every block that could
 * hold such a transaction is confirmed as well. Reported heights are accepted if plausible
 * (`height.ts`). Blockhashes arrive from different sources in any order; the last 512 are kept,
 * more than the 300 in a validator's queue.
 *
 * Decision: docs/decisions/0024-blockhashes-from-the-sysvar.md
 */

import { BLOCKHASHES_KEPT } from "../limits.ts";
import { createHeight, type HeightCounters } from "./height.ts";

export interface Blocks {
  /** Reports the height of a confirmed block. Returns whether it is plausible. */
  setHeight(height: number): boolean;
  /** Adds a blockhash (32 bytes, copied), valid up to and including that height. */
  add(blockhash: Uint8Array, lastValidHeight: number): void;
  /** The highest confirmed block's height; null before the first two reports. */
  height(): number | null;
  /** When that height was first reported. */
  heightNs(): number;
  /** The last height at which a blockhash is valid; null for an unknown one. */
  lastValidHeight(blockhash: Uint8Array): number | null;
  /** Whether an unknown blockhash was looked up since `clearWanted`. */
  readonly wanted: boolean;
  /** Clears `wanted`; called before all blockhashes a node returned are added. */
  clearWanted(): void;
}

const HASH_BYTES = 32;

export function createBlocks(nowNs: () => number, counters: HeightCounters): Blocks {
  const highest = createHeight(nowNs, counters);
  const hashes = new Uint8Array(BLOCKHASHES_KEPT * HASH_BYTES);
  const heights = new Float64Array(BLOCKHASHES_KEPT);
  /** Maps the first 32 bits of a hash, which are random, to its index. */
  const places = new Map<number, number>();
  let next = 0;
  let filled = 0;
  // Set initially, because no blockhash is known yet.
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
