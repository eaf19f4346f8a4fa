import { describe, expect, it } from "vitest";
import { ClusterCounters } from "../../../src/cluster/counters.ts";
import { BLOCKHASHES_KEPT } from "../../../src/cluster/limits.ts";
import { fc } from "../../support/properties.ts";
import { observedBlocks } from "./fixture.ts";

function hash(index: number, first = index): Uint8Array {
  const bytes = new Uint8Array(32);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, first, true);
  view.setUint32(28, index, true);
  return bytes;
}

function newBlocks(nowNs = () => 0) {
  return observedBlocks(nowNs, new ClusterCounters());
}

describe("block height", () => {
  it("is null at first, then the highest reported height with its time", () => {
    let nowNs = 0;
    const blocks = newBlocks(() => nowNs);
    expect(blocks.height()).toBeNull();
    for (const [reported, accepted] of [
      [10, null],
      [10, 10],
      [9, 10],
      [12, 12],
      [12, 12],
    ] as const) {
      nowNs += 1;
      expect(blocks.setHeight(reported)).toBe(accepted !== null);
      expect(blocks.height()).toBe(accepted);
    }
    // The fifth report repeated the height of the fourth.
    expect(blocks.heightNs()).toBe(4);
  });
});

describe("blockhash", () => {
  it("is stored with the last valid height added most recently", () => {
    const blocks = newBlocks();
    const bytes = hash(1);
    blocks.add(bytes, 160);
    bytes.fill(0);
    expect(blocks.lastValidHeight(hash(1))).toBe(160);
    expect(blocks.lastValidHeight(hash(2))).toBeNull();
    blocks.add(hash(1), 170);
    expect(blocks.lastValidHeight(hash(1))).toBe(170);
  });

  it("is compared in full, and is ignored if it has another size", () => {
    const blocks = newBlocks();
    blocks.add(hash(1, 7), 160);
    expect(blocks.lastValidHeight(hash(2, 7))).toBeNull();
    blocks.add(hash(1).subarray(1), 99);
    expect(blocks.lastValidHeight(hash(1).subarray(1))).toBeNull();
  });

  it("is evicted exactly when BLOCKHASHES_KEPT newer ones were added", () => {
    const blocks = newBlocks();
    for (let index = 0; index < BLOCKHASHES_KEPT; index += 1) blocks.add(hash(index), index);
    expect(blocks.lastValidHeight(hash(0))).toBe(0);
    blocks.add(hash(BLOCKHASHES_KEPT), 9);
    expect(blocks.lastValidHeight(hash(0))).toBeNull();
    expect(blocks.lastValidHeight(hash(1))).toBe(1);
  });

  it("is found if it is among the newest, after any sequence of additions", () => {
    const additions = fc.array(fc.record({ index: fc.nat(60), height: fc.nat(1000) }));
    fc.assert(
      fc.property(additions, (list) => {
        const blocks = newBlocks();
        const latest = new Map<number, number>();
        for (const { index, height } of list) {
          blocks.add(hash(index), height);
          latest.set(index, height);
        }
        for (const [index, height] of latest) {
          expect(blocks.lastValidHeight(hash(index))).toBe(height);
        }
      }),
    );
  });
});

describe("wanted", () => {
  it("is true at first, and again after a lookup that found nothing", () => {
    const blocks = newBlocks();
    expect(blocks.wanted).toBe(true);
    blocks.clearWanted();
    blocks.add(hash(1), 160);
    blocks.lastValidHeight(hash(1));
    expect(blocks.wanted).toBe(false);
    blocks.lastValidHeight(hash(2));
    expect(blocks.wanted).toBe(true);
  });
});
