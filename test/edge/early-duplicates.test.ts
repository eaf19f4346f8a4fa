/** Duplicates that are kept until their original is recorded. */

import { describe, expect, it } from "vitest";
import { EarlyDuplicates } from "../../src/edge/early-duplicates.ts";
import { EARLY_DUPLICATES_MAX } from "../../src/edge/limits.ts";

/** A signature at offset 1, in memory shared by threads, as in a ring. */
function bytesOf(id: number): Uint8Array {
  const bytes = new Uint8Array(new SharedArrayBuffer(80), 8, 70);
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(40, id);
  return bytes;
}

describe("early duplicates", () => {
  it("are returned once, in order, only for their own transaction", () => {
    const early = new EarlyDuplicates();
    const [first, second] = [
      { account: "a", maxRetries: 3 },
      { account: "b", maxRetries: null },
    ];
    const bytes = bytesOf(1);
    early.add(bytes, 1, first);
    // The view was borrowed.
    bytes.fill(0);
    early.add(bytesOf(1), 1, second);
    expect(early.take(bytesOf(2), 1)).toEqual([]);
    expect(early.size).toBe(2);
    expect(early.take(bytesOf(1), 1)).toEqual([first, second]);
    expect(early.take(bytesOf(1), 1)).toEqual([]);
    expect(early.size).toBe(0);
  });

  it("are bounded: the oldest are evicted", () => {
    const early = new EarlyDuplicates();
    const duplicate = { account: "a", maxRetries: null };
    for (let id = 0; id <= EARLY_DUPLICATES_MAX; id += 1) early.add(bytesOf(id), 1, duplicate);
    expect(early.size).toBe(EARLY_DUPLICATES_MAX);
    expect(early.take(bytesOf(0), 1)).toEqual([]);
    expect(early.take(bytesOf(1), 1)).toEqual([duplicate]);
    for (let count = 0; count < 3 * EARLY_DUPLICATES_MAX; count += 1)
      early.add(bytesOf(7), 1, duplicate);
    expect(early.size).toBeLessThanOrEqual(EARLY_DUPLICATES_MAX);
  });
});
