import { describe, expect, it } from "vitest";
import { DelegatedLimits } from "../../src/limits/delegated-limits.ts";
import {
  createKeyCacheMemory,
  NO_LIMIT_SLOT,
  ThreadLimitStates,
} from "../../src/limits/thread-limit-states.ts";

const SECOND = 1_000_000_000;
const rate = { ratePerSecond: 1, burst: 3 };

function scene(slotCount = 4, statesMax = 100) {
  const limitStates = new ThreadLimitStates(createKeyCacheMemory());
  return { limitStates, limits: new DelegatedLimits(limitStates, slotCount, statesMax) };
}

describe("a limit that is held", () => {
  it("continues from its state, and keeps it when it is released", () => {
    const { limitStates, limits } = scene();
    expect(limits.tryCharge("a", rate, SECOND)).toBe(0);
    const limitSlot = limits.delegate("a");
    expect(limitStates.fullNsOf(limitSlot)).toBe(2 * SECOND);
    expect(limits.states.of("a")).toBeUndefined();
    // First another thread, then this one.
    expect(limitStates.tryCharge(limitSlot, SECOND, SECOND, rate.burst)).toBe(0);
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
    limits.delegate("a");
    limits.delegate("c");
    expect([limits.size, limits.delegatedCount]).toEqual([3, 2]);
    for (const name of ["a", "c"]) limits.release(name, SECOND);
    // A limit that was never charged needs no state.
    expect([limits.size, limits.delegatedCount]).toEqual([2, 0]);
  });

  it("keeps its cell until all who hold it have let it go", () => {
    const { limits } = scene();
    const limitSlot = limits.delegate("a");
    expect(limits.delegate("a")).toBe(limitSlot);
    limits.release("a", SECOND);
    expect(limits.delegate("b")).not.toBe(limitSlot);
    expect(limits.delegatedCount).toBe(2);
    limits.release("a", SECOND);
    expect(limits.delegatedCount).toBe(1);
    expect(limits.delegate("c")).toBe(limitSlot);
    limits.release("nobody", SECOND);
  });

  it("finds at most the existing slots, and a freed one starts anew", () => {
    const { limitStates, limits } = scene(2);
    const [first, second] = ["a", "b"].map((name) => limits.delegate(name));
    expect(new Set([first, second])).toEqual(new Set([0, 1]));
    expect(limits.delegate("c")).toBe(NO_LIMIT_SLOT);
    for (let i = 0; i < 3; i += 1) limits.tryCharge("a", rate, SECOND);
    limits.release("a", SECOND);
    expect(limits.delegate("c")).toBe(first);
    expect(limitStates.fullNsOf(first ?? NO_LIMIT_SLOT)).toBe(0);
    expect(limits.tryCharge("c", rate, SECOND)).toBe(0);
    expect(limits.tryCharge("a", rate, SECOND)).toBe(SECOND);
  });

  it("evicts another one when it returns and there is no room", () => {
    const { limits } = scene(4, 2);
    limits.delegate("a");
    for (const name of ["a", "b", "c"]) limits.tryCharge(name, rate, SECOND);
    limits.release("a", SECOND);
    expect(limits.states).toMatchObject({ size: 2, evicted: 1 });
    expect(limits.states.of("a")?.fullNs).toBe(2 * SECOND);
  });

  it("refunds what was charged, delegated or not", () => {
    const { limits } = scene();
    limits.delegate("a");
    for (const name of ["a", "b"]) {
      for (let i = 0; i < 3; i += 1) limits.tryCharge(name, rate, SECOND);
      expect(limits.waitNs(name, rate, SECOND)).toBe(SECOND);
      limits.refund(name, rate);
      expect(limits.tryCharge(name, rate, SECOND)).toBe(0);
      expect(limits.tryCharge(name, rate, SECOND)).toBe(SECOND);
    }
    limits.refund("nobody", rate);
    expect(limits.size).toBe(2);
  });
});
