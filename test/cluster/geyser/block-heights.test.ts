import { describe, expect, it } from "vitest";
import { BlockHeights } from "../../../src/cluster/geyser/block-heights.ts";
import { GEYSER_BANKS_PER_SLOT_MAX, GEYSER_BLOCKS_MAX } from "../../../src/cluster/limits.ts";

describe("heights of unconfirmed blocks", () => {
  it("are those of the confirmed bank, once", () => {
    const heights = new BlockHeights();
    heights.add(7, 70, 100);
    heights.add(7, 71, 99);
    heights.add(8, 80, 101);
    expect(heights.take(7, 70)).toBe(100);
    expect(heights.take(7, 70)).toBeNull();
    heights.add(7, 70, 100);
    heights.add(7, 71, 99);
    expect(heights.take(7, 71)).toBe(99);
    expect(heights.take(8, 70)).toBeNull();
  });

  it("are the newest of the slot where no bank is known", () => {
    const heights = new BlockHeights();
    heights.add(7, null, 100);
    heights.add(7, null, 101);
    expect(heights.take(7, null)).toBe(101);
    heights.add(7, null, 102);
    expect(heights.take(7, 70)).toBe(102);
    heights.add(7, 70, 103);
    heights.add(7, 71, 104);
    expect(heights.take(7, null)).toBe(104);
  });

  it("fit the confirmations of a later stream, which has other ids", () => {
    const heights = new BlockHeights();
    heights.add(7, 70, 100);
    heights.add(7, 71, 101);
    heights.forgetBanks();
    // By chance the id of another bank.
    expect(heights.take(7, 70)).toBe(101);
  });

  it("are dropped, the oldest slot and the oldest bank of a slot first", () => {
    const heights = new BlockHeights();
    for (let bank = 0; bank <= GEYSER_BANKS_PER_SLOT_MAX; bank += 1) heights.add(1, bank, bank);
    expect(heights.take(1, 0)).toBeNull();
    for (let bank = 0; bank <= GEYSER_BANKS_PER_SLOT_MAX; bank += 1) heights.add(1, bank, bank);
    expect(heights.take(1, 1)).toBe(1);
    for (let slot = 0; slot <= GEYSER_BLOCKS_MAX; slot += 1) heights.add(slot, 5, slot);
    expect(heights.take(0, 5)).toBeNull();
    expect(heights.take(1, 5)).toBe(1);
  });
});
