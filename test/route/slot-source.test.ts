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

  it("tells a slot that has begun from one whose predecessor has ended", () => {
    const source = new SlotSourceEstimate();
    const begun = (kind: "start" | "end" | "polled", slot: number) => {
      source.observe(kind, slot, 0, SLOT_MS);
      return [source.anchorSlot, source.begunSlot];
    };
    expect(begun("end", 99)).toEqual([100, 99]);
    expect(begun("start", 100)).toEqual([100, 100]);
    expect(begun("end", 99)).toEqual([100, 100]);
    expect(begun("polled", 102)).toEqual([102, 102]);
    expect(begun("start", 101)).toEqual([102, 102]);
  });

  it("has the mean time between its events, once there are two", () => {
    const source = new SlotSourceEstimate();
    source.observe("start", 100, 0, SLOT_MS);
    expect(source.gapNs).toBeNull();
    source.observe("start", 101, 200 * MS, SLOT_MS);
    source.observe("start", 102, 500 * MS, SLOT_MS);
    expect(source.gapNs).toBe(250 * MS);
  });

  describe("with events that ascend from below", () => {
    /** A source at slot 1000 at 0 ms, and then at the slots below, one each 250 ms. */
    function below(...slots: readonly number[]) {
      const source = new SlotSourceEstimate();
      for (let slot = 900; slot <= 1000; slot += 1) {
        source.observe("start", slot, (slot - 1000) * SLOT_MS * MS, SLOT_MS);
      }
      for (const [at, slot] of slots.entries()) {
        source.observe("start", slot, (at + 1) * SLOT_MS * MS, SLOT_MS);
      }
      return { source, slot: source.position(slots.length * SLOT_MS * MS, SLOT_MS) };
    }

    it("returns to them, and measures the slot time on", () => {
      const { source, slot } = below(900, 901, 902, 903);
      expect(slot).toBe(903);
      expect(source.returns).toBe(1);
      const [sinceNs, atNs] = [SLOT_MS * MS, 4 * SLOT_MS * MS];
      expect(source.back).toEqual({ sinceNs, atNs, fromSlot: 1000 });
      expect(source.lastSlot).toBe(903);
      expect(source.slotTimeMs).toBeCloseTo(SLOT_MS);
      expect(source.observe("start", 904, 5 * SLOT_MS * MS, SLOT_MS)).toBe(true);
      expect(source.returns).toBe(1);
    });

    it("does not return if one is above its slot, or if one is invalid", () => {
      expect(below(900, 901, 1003, 902, 903).source.returns).toBe(0);
      const { source } = below(900, 901);
      source.interrupt();
      for (const at of [3, 4, 5]) source.observe("start", 899 + at, at * SLOT_MS * MS, SLOT_MS);
      expect(source.returns).toBe(0);
      source.observe("start", 905, 6 * SLOT_MS * MS, SLOT_MS);
      expect(source.returns).toBe(1);
    });

    it("returns with two polls, but late if events above followed before", () => {
      const source = new SlotSourceEstimate();
      const polled = (slot: number, ms: number) => {
        source.observe("polled", slot, ms * MS, SLOT_MS);
        return source.returns;
      };
      polled(1000, 0);
      expect([polled(902, 400), polled(903, 800)]).toEqual([0, 1]);
      for (let ms = 1_200; ms < 6_000; ms += 400) polled(902 + ms / 400, ms);
      // Two nodes answer in turns.
      for (const ms of [6_000, 6_800, 7_600]) {
        polled(900 + ms / 400, ms);
        polled(922 + ms / 400, ms + 400);
      }
      const returns = source.returns;
      for (let ms = 8_400; ms < 10_900; ms += 400) {
        expect(polled(880 + ms / 400, ms)).toBe(returns);
      }
      expect(polled(908, 11_200)).toBe(returns + 1);
    });

    it("does not return by less than sources that agree may be apart", () => {
      expect(below(1000, 1000, 1000, 1000).source.returns).toBe(0);
      expect(below(997, 998, 999, 1000).source.returns).toBe(0);
      expect(below(996, 997, 998, 999).source.returns).toBe(1);
    });
  });
});
