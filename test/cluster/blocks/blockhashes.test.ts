import { describe, expect, it } from "vitest";
import { createBlockhashes } from "../../../src/cluster/blocks/blockhashes.ts";
import { BLOCKHASHES_KEPT } from "../../../src/cluster/limits.ts";

// test/cluster/blocks/blocks.test.ts tests the table as a part of the blocks.
describe("blockhashes", () => {
  it("are the last BLOCKHASHES_KEPT; what is no blockhash is not added", () => {
    const blockhashes = createBlockhashes();
    const hash = (index: number): Uint8Array => {
      const bytes = new Uint8Array(32);
      new DataView(bytes.buffer).setUint32(0, index);
      return bytes;
    };
    blockhashes.add(new Uint8Array(31), 1);
    expect(blockhashes.lastValidHeight(new Uint8Array(31))).toBeNull();
    for (let index = 0; index <= BLOCKHASHES_KEPT; index += 1) {
      blockhashes.add(hash(index), 1_000 + index);
    }
    expect(blockhashes.lastValidHeight(hash(0))).toBeNull();
    expect(blockhashes.lastValidHeight(hash(1))).toBe(1_001);
    expect(blockhashes.lastValidHeight(hash(BLOCKHASHES_KEPT))).toBe(1_000 + BLOCKHASHES_KEPT);
  });
});
