import { describe, expect, it } from "vitest";
import { createCalendar } from "../../src/sandbox/cluster-slots.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { fc } from "../support/properties.ts";

const OPTIONS = {
  identities: ["A", "B", "C"],
  slotMs: 250,
  skipShare: 0.05,
  epochSlots: 64,
  seed: 1,
};

describe("the calendar", () => {
  it("starts with the third epoch and advances with the clock", () => {
    const clock = createFakeClock();
    const calendar = createCalendar(clock, OPTIONS);
    expect(calendar.slotAt(clock.nowNs())).toBe(128);
    clock.advance(249);
    expect(calendar.slotAt(clock.nowNs())).toBe(128);
    clock.advance(1);
    expect(calendar.slotAt(clock.nowNs())).toBe(129);
    expect(calendar.startNs(129)).toBe(clock.nowNs());
    expect([calendar.epochOf(127), calendar.epochOf(128)]).toEqual([1, 2]);
  });

  it("assigns each window of four slots to one leader, and some to every leader", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 0, max: 1_000_000 }), (seed, window) => {
        const calendar = createCalendar(createFakeClock(), { ...OPTIONS, seed });
        const leaders = [0, 1, 2, 3].map((index) => calendar.leaderAt(window * 4 + index));
        expect(new Set(leaders).size).toBe(1);
      }),
    );
    const calendar = createCalendar(createFakeClock(), OPTIONS);
    const seen = new Set(Array.from({ length: 100 }, (_, window) => calendar.leaderAt(window * 4)));
    expect(seen).toEqual(new Set(["A", "B", "C"]));
  });

  it("returns the same leaders by epoch as by slot", () => {
    const calendar = createCalendar(createFakeClock(), OPTIONS);
    const leaders = calendar.leadersOf(5);
    const indexes = Object.values(leaders).flat();
    expect(indexes.sort((a, b) => a - b)).toEqual(Array.from({ length: 64 }, (_, index) => index));
    for (const [identity, own] of Object.entries(leaders)) {
      for (const index of own) expect(calendar.leaderAt(5 * 64 + index)).toBe(identity);
    }
  });

  it("is equal for equal seeds, and different for others", () => {
    const text = (seed: number): string => {
      const calendar = createCalendar(createFakeClock(), { ...OPTIONS, seed });
      return Array.from(
        { length: 256 },
        (_, slot) => `${calendar.leaderAt(slot)}${calendar.isSkipped(slot)}`,
      ).join();
    };
    expect(text(7)).toBe(text(7));
    expect(text(7)).not.toBe(text(8));
  });

  it("skips no slot, every slot, or a share of them", () => {
    const skipped = (skipShare: number): number => {
      const calendar = createCalendar(createFakeClock(), { ...OPTIONS, skipShare });
      return Array.from({ length: 10_000 }, (_, slot) => calendar.isSkipped(slot)).filter(Boolean)
        .length;
    };
    expect(skipped(0)).toBe(0);
    expect(skipped(1)).toBe(10_000);
    expect(Math.abs(skipped(0.2) - 2000)).toBeLessThan(200);
  });

  it("requires leaders and complete windows", () => {
    const clock = createFakeClock();
    expect(() => createCalendar(clock, { ...OPTIONS, identities: [] })).toThrow(/leader/);
    expect(() => createCalendar(clock, { ...OPTIONS, epochSlots: 30 })).toThrow(/windows/);
    expect(() => createCalendar(clock, { ...OPTIONS, epochSlots: 0 })).toThrow(/windows/);
  });
});
