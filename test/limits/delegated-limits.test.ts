import { describe, expect, it } from "vitest";
import { HeldLimits } from "../../src/limits/delegated-limits.ts";
import { LimitCells, NO_CELL, passMemory } from "../../src/limits/shared-state.ts";

const SECOND = 1_000_000_000;
const rate = { ratePerSecond: 1, burst: 3 };

function scene(cellCount = 4, statesMax = 100) {
  const cells = new LimitCells(passMemory());
  return { cells, limits: new HeldLimits(cells, cellCount, statesMax) };
}

describe("a limit that is held", () => {
  it("goes on from what it was, and goes on with what it is when it is let go", () => {
    const { cells, limits } = scene();
    expect(limits.tryCharge("a", rate, SECOND)).toBe(0);
    const cell = limits.hold("a");
    expect(cells.fullNsOf(cell)).toBe(2 * SECOND);
    expect(limits.states.of("a")).toBeUndefined();
    // Another thread, then this one.
    expect(cells.tryCharge(cell, SECOND, SECOND, rate.burst)).toBe(0);
    expect(limits.tryCharge("a", rate, SECOND)).toBe(0);
    expect(limits.waitNs("a", rate, SECOND)).toBe(SECOND);
    expect(limits.tryCharge("a", rate, SECOND)).toBe(SECOND);
    limits.release("a", SECOND);
    expect(limits.states.of("a")?.fullNs).toBe(4 * SECOND);
    expect(limits.waitNs("a", rate, SECOND)).toBe(SECOND);
    expect(limits.tryCharge("a", rate, 2 * SECOND)).toBe(0);
  });

  it("is known once, wherever it is", () => {
    const { limits } = scene();
    limits.tryCharge("a", rate, SECOND);
    limits.tryCharge("b", rate, SECOND);
    limits.hold("a");
    limits.hold("c");
    expect([limits.size, limits.heldCount]).toEqual([3, 2]);
    for (const name of ["a", "c"]) limits.release(name, SECOND);
    // Nothing is to be said of one that was never charged.
    expect([limits.size, limits.heldCount]).toEqual([2, 0]);
  });

  it("keeps its cell until all who hold it have let it go", () => {
    const { limits } = scene();
    const cell = limits.hold("a");
    expect(limits.hold("a")).toBe(cell);
    limits.release("a", SECOND);
    expect(limits.hold("b")).not.toBe(cell);
    expect(limits.heldCount).toBe(2);
    limits.release("a", SECOND);
    expect(limits.heldCount).toBe(1);
    expect(limits.hold("c")).toBe(cell);
    limits.release("nobody", SECOND);
  });

  it("finds no more cells than there are, and one that is free begins anew", () => {
    const { cells, limits } = scene(2);
    const [first, second] = ["a", "b"].map((name) => limits.hold(name));
    expect(new Set([first, second])).toEqual(new Set([0, 1]));
    expect(limits.hold("c")).toBe(NO_CELL);
    for (let i = 0; i < 3; i += 1) limits.tryCharge("a", rate, SECOND);
    limits.release("a", SECOND);
    expect(limits.hold("c")).toBe(first);
    expect(cells.fullNsOf(first ?? NO_CELL)).toBe(0);
    expect(limits.tryCharge("c", rate, SECOND)).toBe(0);
    expect(limits.tryCharge("a", rate, SECOND)).toBe(SECOND);
  });

  it("makes another one be forgotten where it comes back and there is no room", () => {
    const { limits } = scene(4, 2);
    limits.hold("a");
    for (const name of ["a", "b", "c"]) limits.tryCharge(name, rate, SECOND);
    limits.release("a", SECOND);
    expect(limits.states).toMatchObject({ size: 2, evicted: 1 });
    expect(limits.states.of("a")?.fullNs).toBe(2 * SECOND);
  });

  it("is given back what was charged, held or not", () => {
    const { limits } = scene();
    limits.hold("a");
    for (const name of ["a", "b"]) {
      for (let i = 0; i < 3; i += 1) limits.tryCharge(name, rate, SECOND);
      expect(limits.waitNs(name, rate, SECOND)).toBe(SECOND);
      limits.giveBack(name, rate);
      expect(limits.tryCharge(name, rate, SECOND)).toBe(0);
      expect(limits.tryCharge(name, rate, SECOND)).toBe(SECOND);
    }
    limits.giveBack("nobody", rate);
    expect(limits.size).toBe(2);
  });
});
