import { describe, expect, it } from "vitest";
import { createBlocks } from "../../../src/cluster/blocks/blocks.ts";
import { createClusterCounters } from "../../../src/cluster/counters.ts";
import { BLOCKHASHES_KEPT } from "../../../src/cluster/limits.ts";
import { fc } from "../../support/properties.ts";

function hash(index: number, first = index): Uint8Array {
  const bytes = new Uint8Array(32);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, first, true);
  view.setUint32(28, index, true);
  return bytes;
}

function newBlocks(nowNs = () => 0) {
  return createBlocks(nowNs, createClusterCounters());
}

describe("the block height", () => {
  it("is unknown at first, is the highest that was told, and knows since when", () => {
    let nowNs = 0;
    const blocks = newBlocks(() => nowNs);
    expect(blocks.height()).toBeNull();
    for (const [told, known] of [
      [10, null],
      [10, 10],
      [9, 10],
      [12, 12],
      [12, 12],
    ] as const) {
      nowNs += 1;
      expect(blocks.setHeight(told)).toBe(known !== null);
      expect(blocks.height()).toBe(known);
    }
    // The last height was not new.
    expect(blocks.heightNs()).toBe(4);
  });
});

describe("a blockhash", () => {
  it("is known with its last height, the newest that was told", () => {
    const blocks = newBlocks();
    const bytes = hash(1);
    blocks.add(bytes, 160);
    bytes.fill(0);
    expect(blocks.lastValidHeight(hash(1))).toBe(160);
    expect(blocks.lastValidHeight(hash(2))).toBeNull();
    blocks.add(hash(1), 170);
    expect(blocks.lastValidHeight(hash(1))).toBe(170);
  });

  it("is not taken for another that begins alike, nor for one of another size", () => {
    const blocks = newBlocks();
    blocks.add(hash(1, 7), 160);
    expect(blocks.lastValidHeight(hash(2, 7))).toBeNull();
    blocks.add(hash(1).subarray(1), 99);
    expect(blocks.lastValidHeight(hash(1).subarray(1))).toBeNull();
  });

  it("is forgotten once as many newer ones came as are kept, and no earlier", () => {
    const blocks = newBlocks();
    for (let index = 0; index < BLOCKHASHES_KEPT; index += 1) blocks.add(hash(index), index);
    expect(blocks.lastValidHeight(hash(0))).toBe(0);
    blocks.add(hash(BLOCKHASHES_KEPT), 9);
    expect(blocks.lastValidHeight(hash(0))).toBeNull();
    expect(blocks.lastValidHeight(hash(1))).toBe(1);
  });

  it("is found, whatever was told before, when it is among the newest", () => {
    const told = fc.array(fc.record({ index: fc.nat(60), height: fc.nat(1000) }));
    fc.assert(
      fc.property(told, (list) => {
        const blocks = newBlocks();
        const last = new Map<number, number>();
        for (const { index, height } of list) {
          blocks.add(hash(index), height);
          last.set(index, height);
        }
        for (const [index, height] of last) {
          expect(blocks.lastValidHeight(hash(index))).toBe(height);
        }
      }),
    );
  });
});

describe("what is wanted", () => {
  it("is everything at first, and then what was looked up in vain", () => {
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
