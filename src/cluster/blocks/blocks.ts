/**
 * What nodes report of blocks, on its way to a sink: heights only if they are plausible
 * (`height.ts`), and whether the list of valid blockhashes is wanted from a node.
 *
 * The height is that of the highest confirmed block: once it exceeds a blockhash's last valid
 * height, every block that could hold such a transaction is confirmed as well.
 *
 * Decision: docs/decisions/0024-blockhashes-from-the-sysvar.md
 */

import type { ClusterSink } from "../ports.ts";
import { createHeight, type HeightCounters, type KnownHeight } from "./height.ts";

export type BlockSink = Pick<ClusterSink, "setHeight" | "addBlockhash" | "blockhashesRead">;

export interface Blocks {
  /** Reports the height of a confirmed block. Returns whether it is plausible. */
  setHeight(height: number): boolean;
  /** Adds a blockhash (32 bytes), valid up to and including that height. */
  add(blockhash: Uint8Array, lastValidHeight: number): void;
  /** Whether all valid blockhashes are wanted: at first, and after each `want`. */
  readonly wanted: boolean;
  /** An unknown blockhash was looked up. */
  want(): void;
  /** Clears `wanted`; called before all blockhashes a node returned are added. */
  clearWanted(): void;
}

export function createBlocks(
  nowNs: () => number,
  counters: HeightCounters,
  sink: BlockSink,
  known: KnownHeight | null = null,
): Blocks {
  const highest = createHeight(nowNs, counters, known);
  let wanted = true;
  return {
    setHeight(height) {
      const before = highest.value;
      const isPlausible = highest.observe(height);
      const { value, sinceNs } = highest;
      if (value !== null && value !== before) sink.setHeight(value, sinceNs);
      return isPlausible;
    },
    add: (blockhash, lastValidHeight) => sink.addBlockhash(blockhash, lastValidHeight),
    get wanted() {
      return wanted;
    },
    want() {
      wanted = true;
    },
    clearWanted() {
      wanted = false;
      sink.blockhashesRead();
    },
  };
}
