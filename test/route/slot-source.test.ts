import { describe, expect, it } from "vitest";
import { SlotSourceEstimate } from "../../src/route/slot-source.ts";

const MS = 1_000_000;
const PACE_MS = 250;

describe("one source of slots", () => {
  it("has no position before its first event and after too long a silence", () => {
    const source = new SlotSourceEstimate();
    expect(source.position(0, PACE_MS)).toBeNull();
    expect(source.progressNs).toBeNull();
    source.observe("start", 100, 0, PACE_MS);
    expect(source.position(240 * PACE_MS * MS, PACE_MS)).toBe(340);
    expect(source.position(241 * PACE_MS * MS, PACE_MS)).toBeNull();
  });

  it("goes on from its last progress at the pace that it is told", () => {
    const source = new SlotSourceEstimate();
    source.observe("end", 99, 0, PACE_MS);
    source.observe("start", 100, 200 * MS, PACE_MS);
    expect(source.position(400 * MS, PACE_MS)).toBe(101);
    expect(source.position(400 * MS, 100)).toBe(104);
    expect(source.progressNs).toBe(0);
    expect(source.lastEventNs).toBe(200 * MS);
    expect(source.startNs(103, PACE_MS)).toBe(750 * MS);
  });

  it("says of a far-future event that it does not believe it", () => {
    const source = new SlotSourceEstimate();
    for (let slot = 100; slot < 148; slot += 1) {
      expect(source.observe("start", slot, slot * PACE_MS * MS, PACE_MS)).toBe(true);
    }
    expect(source.observe("start", 5000, 148 * PACE_MS * MS, PACE_MS)).toBe(false);
    expect(source.position(148 * PACE_MS * MS, PACE_MS)).toBe(148);
  });

  it("is where it says also where it is asked so rarely that many slots pass between", () => {
    const source = new SlotSourceEstimate();
    for (let slot = 100; slot < 900; slot += 8) {
      const atNs = slot * PACE_MS * MS;
      expect(source.observe("polled", slot, atNs, PACE_MS)).toBe(true);
      expect(source.position(atNs, PACE_MS)).toBe(slot);
    }
    expect(source.observe("polled", 2_000, 900 * PACE_MS * MS, PACE_MS)).toBe(false);
  });

  it("is believed when the network gets faster, so that its slot time is measured anew", () => {
    const source = new SlotSourceEstimate();
    let [slot, atMs] = [0, 0];
    for (const slotMs of [400, 250]) {
      for (let poll = 0; poll < 100; poll += 1) {
        slot += 2_000 / slotMs;
        atMs += 2_000;
        expect(source.observe("polled", slot, atMs * MS, 400)).toBe(true);
      }
      expect(source.slotTimeMs).toBeCloseTo(slotMs);
    }
  });

  it("counts that it came back, be it below where it was", () => {
    const source = new SlotSourceEstimate();
    source.observe("start", 1000, 0, PACE_MS);
    source.observe("start", 10, 30_000 * MS, PACE_MS);
    expect(source.returns).toBe(0);
    source.observe("start", 11, 30_250 * MS, PACE_MS);
    expect(source.returns).toBe(1);
    expect(source.position(30_250 * MS, PACE_MS)).toBe(11);
  });
});
