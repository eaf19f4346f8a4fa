import { describe, expect, it } from "vitest";
import { STATUS_DELETED_SLOTS_MAX } from "../../src/landing/limits.ts";
import { StatusChain } from "../../src/landing/status-chain.ts";

/** A node at slot 140 when the cluster went back to 100. */
function setUp() {
  const chain = new StatusChain();
  for (const slot of [130, 140, 139]) chain.responded(slot);
  chain.slotWentBack(100);
  /** Whether a status in slot 101 is in doubt after a response at that slot. */
  const after = (slot: number) => {
    chain.responded(slot);
    return chain.isInDoubt(101);
  };
  return { chain, after };
}

describe("statuses after the slot went back", () => {
  it("are in doubt above the slot that was kept, and so is the absence of one", () => {
    const { chain } = setUp();
    expect([100, 101, 140, 141, null].map((slot) => chain.isInDoubt(slot))).toEqual([
      false,
      true,
      true,
      true,
      true,
    ]);
  });

  it("count again once the node is below where it was, by more than nodes differ", () => {
    expect([140, 139, 136].map(setUp().after)).toEqual([true, true, true]);
    expect([136, 135, 150].map(setUp().after)).toEqual([true, false, false]);
  });

  it("count again once the node is further than deleted blocks can be", () => {
    const far = 140 + STATUS_DELETED_SLOTS_MAX;
    expect([141, far, far + 1, far + 2].map(setUp().after)).toEqual([true, true, false, false]);
  });

  it("are not in doubt if the node was not above that slot, or said nothing yet", () => {
    const chain = new StatusChain();
    chain.slotWentBack(100);
    expect(chain.isInDoubt(101)).toBe(false);
    chain.responded(104);
    chain.slotWentBack(100);
    expect(chain.isInDoubt(101)).toBe(false);
    chain.responded(105);
    chain.slotWentBack(100);
    expect(chain.isInDoubt(101)).toBe(true);
  });

  it("are in doubt above the lowest slot if it goes back again meanwhile", () => {
    const { chain, after } = setUp();
    chain.slotWentBack(90);
    chain.slotWentBack(120);
    expect([90, 91].map((slot) => chain.isInDoubt(slot))).toEqual([false, true]);
    expect(after(120)).toBe(false);
  });
});
