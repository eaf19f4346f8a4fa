/** Blocks and quiet ranges with what their sink received, looked up as the main thread does. */

import { createBlockhashes } from "../../../src/cluster/blocks/blockhashes.ts";
import { createBlocks } from "../../../src/cluster/blocks/blocks.ts";
import type { HeightCounters } from "../../../src/cluster/blocks/height.ts";
import { contentOf, createQuietRange } from "../../../src/cluster/blocks/quiet-range.ts";
import type { SlotRange } from "../../../src/cluster/ports.ts";

/** Blocks, and a sink that looks them up; an unknown blockhash is wanted. */
export function observedBlocks(nowNs: () => number, counters: HeightCounters) {
  const received = blocksReceived();
  const blocks = createBlocks(nowNs, counters, received.sink);
  const { height, heightNs } = received;
  return Object.assign(blocks, {
    height,
    heightNs,
    lastValidHeight(blockhash: Uint8Array) {
      const lastValidHeight = received.lastValidHeight(blockhash);
      if (lastValidHeight === null) blocks.want();
      return lastValidHeight;
    },
  });
}

/** A sink of blocks, and look-ups of what it received. */
export function blocksReceived() {
  const blockhashes = createBlockhashes();
  let height: number | null = null;
  let heightNs = 0;
  const sink = {
    setHeight(value: number, sinceNs: number) {
      height = value;
      heightNs = sinceNs;
    },
    addBlockhash: blockhashes.add,
    blockhashesRead: () => undefined,
  };
  return {
    sink,
    height: () => height,
    heightNs: () => heightNs,
    lastValidHeight: blockhashes.lastValidHeight,
  };
}

export function observedQuietRange() {
  let latest: SlotRange | null = null;
  const range = createQuietRange((each) => {
    latest = each;
  });
  return Object.assign(range, {
    contentOf: (fromSlot: number, toSlot: number) => contentOf(latest, fromSlot, toSlot),
  });
}
