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
  let sinceNs = 0;
  const report = (kind: "start" | "end", reported: number, ms: number) => {
    source.observe(kind, reported, ms * MS, SLOT_MS);
    sinceNs = standstill.timeNs(ms * MS, SLOT_MS);
  };
  source.observe("start", slot, 0, SLOT_MS);
  standstill.progressed(0, SLOT_MS);
  const position = (ms: number) => standstill.position(source, sinceNs, ms * MS, SLOT_MS);
  const changeMs = (of: number, ms: number) =>
    standstill.changeNs(source, sinceNs, of, ms * MS, SLOT_MS) / MS;
  return { standstill, source, report, position, changeMs };
}

describe("standstill", () => {
  it("is in doubt seven slots after the last event, and begins after ten", () => {
    const { standstill, position } = setUp();
    const times = [0, 250, 1_749, 1_750, 2_499, 2_500, 20_000];
    expect(times.map(position)).toEqual([100, 101, 106, 104, 104, 100, 100]);
    const states = [1_749, 1_750, 2_499, 2_500].map((ms) => [
      standstill.isInDoubt(ms * MS, SLOT_MS),
      standstill.isStill(ms * MS, SLOT_MS),
    ]);
    expect(states).toEqual([
      [false, false],
      [true, false],
      [true, false],
      [true, true],
    ]);
  });

  it("is in doubt one slot less ahead of a slot that has not begun", () => {
    const { position, report } = setUp();
    report("end", 100, 200);
    expect([1_749, 1_750, 2_500].map(position)).toEqual([107, 104, 101]);
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

  it("is in doubt 0.8 s after four slots if slots are long", () => {
    const doubtMs = (slotMs: number) => {
      const { standstill } = setUp();
      let ms = 0;
      while (!standstill.isInDoubt(ms * MS, slotMs)) ms += 1;
      return ms;
    };
    expect([100, 400].map(doubtMs)).toEqual([700, 2_400]);
    expect(setUp().standstill.stillNs(400)).toBe(4_000 * MS);
  });

  it("is postponed by an event without progress, but not beyond the next window", () => {
    const { standstill, position } = setUp();
    standstill.observed(1_000 * MS);
    expect([1_750, 2_000, 2_749, 2_750].map(position)).toEqual([107, 107, 107, 104]);
    expect([3_499, 3_500].map(position)).toEqual([104, 100]);
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
    for (let ms = 500; ms <= 5_000; ms += 500) standstill.progressed(ms * MS, SLOT_MS, 2);
    expect([5_000, 6_000, 7_000, 7_500].map(position)).toEqual([120, 124, 124, 120]);
  });

  it("lets hardly more pass than the slots that were reported", () => {
    const { standstill, position } = setUp();
    for (const ms of [250, 500, 750]) standstill.progressed(ms * MS, SLOT_MS);
    expect(position(750)).toBe(103);
    standstill.progressed(1_500 * MS, SLOT_MS);
    expect(position(1_500)).toBe(104);
    // Both windows were skipped.
    standstill.progressed(3_750 * MS, SLOT_MS, 9);
    expect(position(3_750)).toBe(113);
  });

  it("gives a slot that is late the time by which those before were early", () => {
    const { standstill, position } = setUp();
    for (const ms of [150, 500, 650, 1_000]) standstill.progressed(ms * MS, SLOT_MS);
    expect([1_000, 1_025].map(position)).toEqual([103, 104]);
    const late = setUp();
    for (const ms of [250, 500, 750, 1_150]) late.standstill.progressed(ms * MS, SLOT_MS);
    late.standstill.progressed(1_250 * MS, SLOT_MS);
    expect(late.position(1_250)).toBe(104);
  });

  it("takes no slots from sources that report the next one later", () => {
    const { standstill, position, report, changeMs } = setUp();
    report("start", 100, 0);
    standstill.progressed(9_000 * MS, SLOT_MS);
    // It reported slot 100 with the first, and the newest one is not known to it yet.
    expect([9_000, 9_250, 9_500].map(position)).toEqual([101, 102, 103]);
    expect(changeMs(103, 9_500)).toBe(9_750);
    report("start", 101, 9_600);
    expect([9_600, 9_850].map(position)).toEqual([101, 102]);
    expect(changeMs(101, 9_600)).toBe(9_850);
  });

  it("lets a source that is late stay late", () => {
    const { standstill, source, position, report } = setUp();
    report("start", 101, 100);
    expect(source.anchorSlot).toBe(101);
    standstill.progressed(9_000 * MS, SLOT_MS);
    expect([9_000, 9_099, 9_100].map(position)).toEqual([101, 101, 102]);
  });

  it("ends with its source", () => {
    const { position } = setUp();
    expect([60_249, 60_250].map(position)).toEqual([100, null]);
  });

  it("changes when the next slot begins, when it begins, and when the source ends", () => {
    const { standstill, changeMs } = setUp();
    expect(changeMs(100, 10)).toBe(250);
    expect(changeMs(106, 1_700)).toBe(1_750);
    expect(changeMs(104, 1_750)).toBe(2_500);
    expect(changeMs(100, 2_500)).toBe(60_250);
    standstill.observed(3_000 * MS);
    expect(changeMs(107, 3_100)).toBe(4_750);
  });

  it("ends the passing of the cluster's time", () => {
    const { standstill } = setUp();
    const timeMs = (ms: number) => standstill.timeNs(ms * MS, SLOT_MS) / MS;
    expect([1_000, 2_000, 9_000].map(timeMs)).toEqual([1_000, 1_000, 0]);
    standstill.progressed(9_000 * MS, SLOT_MS);
    expect([9_000, 9_500].map(timeMs)).toEqual([250, 750]);
  });
});
