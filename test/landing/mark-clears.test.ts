import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { LandCounters } from "../../src/landing/land-counters.ts";
import {
  MARK_CLEAR_GAP_MS,
  MARK_CLEAR_REFILL_MS,
  MARK_CLEARS_MAX,
} from "../../src/landing/limits.ts";
import { MarkClears } from "../../src/landing/mark-clears.ts";

function setUp() {
  const counters = new LandCounters();
  return { counters, clears: new MarkClears(counters) };
}

describe("clears of marks", () => {
  it("follow a slot that went back, and the begin and end of a standstill", () => {
    const { clears, counters } = setUp();
    expect(clears.slotWentBack(0)).toBe(true);
    expect(clears.setStalled(true, 1)).toBe(true);
    expect(clears.setStalled(false, 2)).toBe(true);
    expect(counters).toMatchObject({
      marksClearedSlotBack: 1,
      marksClearedUnconfirmed: 2,
      markClearsRefused: 0,
    });
  });

  it("come with a plan only while the confirmation stands still, one each 400 ms", () => {
    const { clears } = setUp();
    const plannedAt = (ms: number) => clears.planned(ms * NS_PER_MS);
    expect(plannedAt(10_000)).toBe(false);
    clears.setStalled(true, 10_000 * NS_PER_MS);
    const gaps = [MARK_CLEAR_GAP_MS - 1, MARK_CLEAR_GAP_MS, 2 * MARK_CLEAR_GAP_MS - 1];
    expect(gaps.map((ms) => plannedAt(10_000 + ms))).toEqual([false, true, false]);
    expect(plannedAt(10_000 + 2 * MARK_CLEAR_GAP_MS)).toBe(true);
    clears.setStalled(false, 20_000 * NS_PER_MS);
    expect(plannedAt(30_000)).toBe(false);
  });

  it("are limited for a feed that goes back and forth", () => {
    const { clears, counters } = setUp();
    const minuteNs = 60_000 * NS_PER_MS;
    let cleared = 0;
    for (let ns = 0; ns < minuteNs; ns += 10 * NS_PER_MS) {
      if (clears.slotWentBack(ns)) cleared += 1;
      if (clears.setStalled(ns % (20 * NS_PER_MS) === 0, ns)) cleared += 1;
    }
    expect(cleared).toBe(MARK_CLEARS_MAX + Math.floor(59_990 / MARK_CLEAR_REFILL_MS));
    expect(counters.markClearsRefused).toBe(12_000 - cleared);
  });

  it("leaves some for a step back and the end of a long standstill", () => {
    const { clears } = setUp();
    clears.setStalled(true, 0);
    for (let ms = 500; ms <= 600_000; ms += 500) clears.planned(ms * NS_PER_MS);
    expect(clears.slotWentBack(600_000 * NS_PER_MS)).toBe(true);
    expect(clears.setStalled(false, 600_001 * NS_PER_MS)).toBe(true);
  });

  it("last for two minutes without a confirmed block, and are full again after it", () => {
    const { clears, counters } = setUp();
    clears.setStalled(true, 0);
    for (let ms = 250; ms <= 120_000; ms += 250) clears.planned(ms * NS_PER_MS);
    expect(counters).toMatchObject({ marksClearedUnconfirmed: 241, markClearsRefused: 0 });
    const laterNs = (120_000 + MARK_CLEARS_MAX * MARK_CLEAR_REFILL_MS) * NS_PER_MS;
    for (let count = 0; count < MARK_CLEARS_MAX; count += 1) {
      expect(clears.slotWentBack(laterNs)).toBe(true);
    }
    expect(clears.slotWentBack(laterNs)).toBe(false);
  });
});
