/**
 * The cluster's block height, and the last valid height of each recent blockhash.
 *
 * A failed lookup sets `wanted`, so that the block watcher requests the list. The height is that of
 * the highest confirmed block: once it exceeds a blockhash's last valid height, every block that
 * could hold such a transaction is confirmed as well. Reported heights are accepted if plausible
 * (`height.ts`).
 *
 * Decision: docs/decisions/0024-blockhashes-from-the-sysvar.md
 */

import type { BlockSink } from "../ports.ts";
import { createBlockhashes } from "./blockhashes.ts";
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
  /** Sets `wanted`. */
  want(): void;
  /** Clears `wanted`; called before all blockhashes a node returned are added. */
  clearWanted(): void;
}

export function createBlocks(
  nowNs: () => number,
  counters: HeightCounters,
  sink: BlockSink | null = null,
): Blocks {
  const highest = createHeight(nowNs, counters);
  const blockhashes = createBlockhashes();
  // Set initially, because no blockhash is known yet.
  let wanted = true;
  return {
    setHeight(height) {
      const before = highest.value;
      const isPlausible = highest.observe(height);
      const { value, sinceNs } = highest;
      if (value !== null && value !== before) sink?.setHeight(value, sinceNs);
      return isPlausible;
    },
    add(blockhash, lastValidHeight) {
      if (!blockhashes.add(blockhash, lastValidHeight)) return;
      sink?.addBlockhash(blockhash, lastValidHeight);
    },
    height: () => highest.value,
    heightNs: () => highest.sinceNs,
    lastValidHeight(blockhash) {
      const height = blockhashes.lastValidHeight(blockhash);
      if (height === null) wanted = true;
      return height;
    },
    get wanted() {
      return wanted;
    },
    want() {
      wanted = true;
    },
    clearWanted() {
      wanted = false;
      sink?.blockhashesRead();
    },
  };
}
