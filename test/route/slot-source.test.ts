import { describe, expect, it } from "vitest";
import { SlotSourceEstimate } from "../../src/route/slot-source.ts";

const MS = 1_000_000;
const SLOT_MS = 250;

describe("slot source estimate", () => {
  it("has no position before its first event, or after too long without events", () => {
    const source = new SlotSourceEstimate();
    expect(source.position(0, SLOT_MS)).toBeNull();
    expect(source.progressNs).toBeNull();
    source.observe("start", 100, 0, SLOT_MS);
    expect(source.position(240 * SLOT_MS * MS, SLOT_MS)).toBe(340);
    expect(source.position(241 * SLOT_MS * MS, SLOT_MS)).toBeNull();
  });

  it("extrapolates from its last progress with the given slot time", () => {
    const source = new SlotSourceEstimate();
    source.observe("end", 99, 0, SLOT_MS);
    source.observe("start", 100, 200 * MS, SLOT_MS);
    expect(source.position(400 * MS, SLOT_MS)).toBe(101);
    expect(source.position(400 * MS, 100)).toBe(104);
    expect(source.progressNs).toBe(0);
    expect(source.lastEventNs).toBe(200 * MS);
    expect(source.startNs(103, SLOT_MS)).toBe(750 * MS);
  });

  it("rejects an event far in the future", () => {
    const source = new SlotSourceEstimate();
    for (let slot = 100; slot < 148; slot += 1) {
      expect(source.observe("start", slot, slot * SLOT_MS * MS, SLOT_MS)).toBe(true);
    }
    expect(source.observe("start", 5000, 148 * SLOT_MS * MS, SLOT_MS)).toBe(false);
    expect(source.position(148 * SLOT_MS * MS, SLOT_MS)).toBe(148);
  });

  it("follows polls that are many slots apart", () => {
    const source = new SlotSourceEstimate();
    for (let slot = 100; slot < 900; slot += 8) {
      const atNs = slot * SLOT_MS * MS;
      expect(source.observe("polled", slot, atNs, SLOT_MS)).toBe(true);
      expect(source.position(atNs, SLOT_MS)).toBe(slot);
    }
    expect(source.observe("polled", 2_000, 900 * SLOT_MS * MS, SLOT_MS)).toBe(false);
  });

  it("accepts events of a faster network, and measures its slot time again", () => {
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

  it("counts a return after silence, even to a lower slot", () => {
    const source = new SlotSourceEstimate();
    source.observe("start", 1000, 0, SLOT_MS);
    source.observe("start", 10, 30_000 * MS, SLOT_MS);
    expect(source.returns).toBe(0);
    source.observe("start", 11, 30_250 * MS, SLOT_MS);
    expect(source.returns).toBe(1);
    expect(source.position(30_250 * MS, SLOT_MS)).toBe(11);
  });
});
