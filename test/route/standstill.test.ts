import { describe, expect, it } from "vitest";
import { SlotPace } from "../../src/route/slot-pace.ts";
import { SlotSourceEstimate } from "../../src/route/slot-source.ts";
import { Standstill } from "../../src/route/standstill.ts";

const MS = 1_000_000;
const SLOT_MS = 250;

/** A source that reported slot 100 at 0 ms, the first of a window. */
function setUp(slot = 100, pace = new SlotPace()) {
  const standstill = new Standstill(pace);
  const source = new SlotSourceEstimate();
  source.observe("start", slot, 0, SLOT_MS);
  standstill.progressed(0, SLOT_MS);
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

  it("never begins while slots pass by the clock", () => {
    const pace = new SlotPace();
    pace.mayStop = false;
    const { standstill, position } = setUp(100, pace);
    expect([0, 1_750, 5_000].map(position)).toEqual([100, 107, 120]);
    expect(standstill.isStill(20_000 * MS, SLOT_MS)).toBe(false);
    pace.isBackLikely = true;
    expect(position(5_000)).toBe(100);
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
    for (let ms = 500; ms <= 5_000; ms += 500) standstill.progressed(ms * MS, SLOT_MS);
    expect([5_000, 6_000, 7_000].map(position)).toEqual([120, 124, 120]);
  });

  it("takes no slots from sources that report the next one later", () => {
    const { standstill, source, position } = setUp();
    standstill.progressed(9_000 * MS, SLOT_MS);
    expect([9_000, 9_250, 9_500].map(position)).toEqual([100, 101, 102]);
    expect(standstill.changeNs(source, 102, 9_500 * MS, SLOT_MS)).toBe(9_750 * MS);
    source.observe("start", 101, 9_600 * MS, SLOT_MS);
    expect([9_600, 9_850].map(position)).toEqual([101, 102]);
    expect(standstill.changeNs(source, 101, 9_600 * MS, SLOT_MS)).toBe(9_850 * MS);
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
    const passedMs = (since: number, ms: number) =>
      standstill.passedNs(since * MS, ms * MS, SLOT_MS) / MS;
    expect([passedMs(0, 1_000), passedMs(0, 9_000), passedMs(8_000, 9_000)]).toEqual([
      1_000, 1_750, 0,
    ]);
    standstill.progressed(9_000 * MS, SLOT_MS);
    expect([passedMs(0, 9_500), passedMs(1_000, 9_500), passedMs(9_100, 9_500)]).toEqual([
      500, 500, 400,
    ]);
  });
});
