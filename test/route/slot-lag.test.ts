import { describe, expect, it } from "vitest";
import { createSlotLag } from "../../src/route/slot-lag.ts";

const MS = 1_000_000;

describe("lag of a slot source", () => {
  it("is the time from a slot's first announcement to that of the source", () => {
    const [first, second] = [createSlotLag(), createSlotLag()];
    const all = [{ lag: first }, { lag: second }];
    expect(second.ms).toBeNull();
    for (let slot = 1; slot < 200; slot += 1) {
      first.saw(slot, slot * 250 * MS, all);
      second.saw(slot, (slot * 250 + 80) * MS, all);
    }
    expect(first.ms).toBe(0);
    expect(second.ms).toBeCloseTo(80);
  });

  it("is smoothed, so that one late slot counts only in part", () => {
    const [first, second] = [createSlotLag(), createSlotLag()];
    const all = [{ lag: first }, { lag: second }];
    for (let slot = 1; slot < 50; slot += 1) {
      first.saw(slot, slot * 250 * MS, all);
      second.saw(slot, (slot * 250 + (slot === 49 ? 200 : 0)) * MS, all);
    }
    expect(second.ms).toBeCloseTo(25);
  });

  it("ignores later announcements of an old slot", () => {
    const lag = createSlotLag();
    lag.saw(10, 0, [{ lag }]);
    lag.saw(10, 900 * MS, [{ lag }]);
    lag.saw(9, 900 * MS, [{ lag }]);
    expect(lag.ms).toBe(0);
    expect(lag.firstNs(10)).toBe(0);
  });

  it("is measured again from lower slots after it was cleared", () => {
    const [first, second] = [createSlotLag(), createSlotLag()];
    const all = [{ lag: first }, { lag: second }];
    for (const lag of [first, second]) lag.saw(100, 0, all);
    for (const lag of [first, second]) lag.clear();
    expect(second.firstNs(100)).toBeNull();
    first.saw(50, 0, all);
    second.saw(50, 80 * MS, all);
    expect(second.ms).toBeCloseTo(10);
  });

  it("distinguishes slots that share a table index", () => {
    const lag = createSlotLag();
    lag.saw(10, 5, [{ lag }]);
    expect(lag.firstNs(74)).toBeNull();
  });
});
