import { describe, expect, it } from "vitest";
import { SlotSourceEstimate } from "../../src/route/slot-source.ts";
import { Standstill } from "../../src/route/standstill.ts";

const MS = 1_000_000;
const SLOT_MS = 250;

/** A source that reported slot 100 at 0 ms, the first of a window. */
function setUp(slot = 100) {
  const standstill = new Standstill();
  const source = new SlotSourceEstimate();
  source.observe("start", slot, 0, SLOT_MS);
  standstill.progressed(0);
  const position = (ms: number) => standstill.position(source, ms * MS, SLOT_MS);
  return { standstill, source, position };
}

describe("standstill", () => {
  it("begins seven slots after the last event", () => {
    const { standstill, position } = setUp();
    expect([0, 250, 1_749, 1_750, 20_000].map(position)).toEqual([100, 101, 106, 100, 100]);
    expect(standstill.isStill(1_749 * MS, SLOT_MS)).toBe(false);
    expect(standstill.isStill(1_750 * MS, SLOT_MS)).toBe(true);
  });

  it("begins 0.8 s after four slots if slots are long", () => {
    const { standstill } = setUp();
    expect(standstill.stillNs(100)).toBe(700 * MS);
    expect(standstill.stillNs(400)).toBe(2_400 * MS);
  });

  it("is postponed by an event without progress, but not beyond the next window", () => {
    const { standstill, position } = setUp();
    standstill.observed(1_000 * MS);
    expect([1_750, 2_000, 2_749, 2_750].map(position)).toEqual([107, 107, 107, 100]);
  });

  it("holds at the end of the next leader's window from any place", () => {
    for (const [slot, end] of [
      [100, 107],
      [101, 107],
      [103, 107],
      [104, 111],
    ] as const) {
      const { standstill, position } = setUp(slot);
      standstill.observed(60_000 * MS);
      expect(position(59_000)).toBe(end);
    }
  });

  it("lets slots pass to where another source makes progress", () => {
    const { standstill, position } = setUp();
    standstill.progressed(5_000 * MS);
    expect([5_000, 6_000, 7_000].map(position)).toEqual([120, 124, 120]);
  });

  it("ends with its source", () => {
    const { position } = setUp();
    expect([60_249, 60_250].map(position)).toEqual([100, null]);
  });

  it("changes when the next slot begins, when it begins, and when the source ends", () => {
    const { standstill, source } = setUp();
    const changeMs = (slot: number, ms: number) =>
      standstill.changeNs(source, slot, ms * MS, SLOT_MS) / MS;
    expect(changeMs(100, 10)).toBe(250);
    expect(changeMs(106, 1_700)).toBe(1_750);
    expect(changeMs(100, 1_750)).toBe(60_250);
    standstill.observed(3_000 * MS);
    expect(changeMs(107, 3_100)).toBe(4_750);
  });

  it("ends the passing of slots for all", () => {
    const { standstill } = setUp();
    expect(standstill.passedNs(1_000 * MS, SLOT_MS)).toBe(1_000 * MS);
    expect(standstill.passedNs(9_000 * MS, SLOT_MS)).toBe(1_750 * MS);
  });
});
