import { describe, expect, it } from "vitest";
import { RouteCounters } from "../../src/route/counters.ts";
import { createSlotClock } from "../../src/route/slots.ts";
import { fc } from "../support/properties.ts";

const MS = 1_000_000;

function setUp() {
  const counters = new RouteCounters();
  return { counters, slots: createSlotClock({}, counters) };
}

/** Observes `count` slot starts from slot `first` at `fromMs`; returns when the next is due. */
function observeStarts(
  slots: ReturnType<typeof createSlotClock>,
  first: number,
  count: number,
  slotMs: number,
  fromMs = 0,
): number {
  for (let index = 0; index < count; index += 1) {
    slots.observe("start", first + index, (fromMs + index * slotMs) * MS);
  }
  return fromMs + count * slotMs;
}

describe("current slot", () => {
  it("is unknown before the first event", () => {
    const { slots } = setUp();
    expect(slots.current(5 * MS)).toBeNull();
    expect(slots.nextSlotNs(5 * MS)).toBeNull();
    expect(slots.lastEventNs).toBeNull();
  });

  it("starts with the polled slot", () => {
    const { slots } = setUp();
    slots.observe("polled", 1000, 0);
    expect(slots.current(0)).toBe(1000);
  });

  it("follows start events, and advances to the next slot on an end event", () => {
    const { slots } = setUp();
    slots.observe("start", 1000, 0);
    slots.observe("start", 1001, 250 * MS);
    expect(slots.current(250 * MS)).toBe(1001);
    slots.observe("end", 1001, 400 * MS);
    expect(slots.current(400 * MS)).toBe(1002);
  });

  it("changes at the time that nextSlotNs returned, to the nanosecond", () => {
    const { slots } = setUp();
    const endNs = observeStarts(slots, 1000, 100, 250) * MS;
    const startNs = slots.nextSlotNs(endNs - 10) ?? 0;
    expect(slots.current(startNs - 10)).toBe(1099);
    expect(slots.current(startNs + 1)).toBe(1100);
  });

  it("ignores and counts invalid slot numbers", () => {
    const { slots, counters } = setUp();
    for (const bad of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60]) {
      slots.observe("start", bad, 0);
    }
    expect(slots.current(0)).toBeNull();
    expect(counters.slotEventsInvalid).toBe(5);
  });

  it("never goes back for late events or events of a fork", () => {
    const { slots } = setUp();
    const afterMs = observeStarts(slots, 1000, 20, 250);
    expect(slots.current((afterMs - 250) * MS)).toBe(1019);
    slots.observe("start", 1011, (afterMs - 240) * MS);
    slots.observe("end", 1012, (afterMs - 230) * MS);
    expect(slots.current((afterMs - 230) * MS)).toBe(1019);
  });

  it("extrapolates over skipped slots without an event", () => {
    const { slots, counters } = setUp();
    const lastMs = observeStarts(slots, 1000, 20, 250) - 250;
    expect(slots.current((lastMs + 249) * MS)).toBe(1019);
    expect(slots.current((lastMs + 250) * MS)).toBe(1020);
    expect(slots.current((lastMs + 1000) * MS)).toBe(1023);
    expect(counters.slotsExtrapolated).toBe(4);
    slots.observe("start", 1024, (lastMs + 1250) * MS);
    expect(slots.current((lastMs + 1250) * MS)).toBe(1024);
  });

  it("does not go back if an end event is behind the extrapolated slot", () => {
    const { slots } = setUp();
    const lastMs = observeStarts(slots, 1000, 20, 250) - 250;
    expect(slots.current((lastMs + 260) * MS)).toBe(1020);
    slots.observe("end", 1018, (lastMs + 270) * MS);
    expect(slots.current((lastMs + 270) * MS)).toBe(1020);
  });

  it("does not go back if a start event is behind the extrapolated slot", () => {
    const { slots } = setUp();
    const lastMs = observeStarts(slots, 1000, 20, 250) - 250;
    expect(slots.current((lastMs + 800) * MS)).toBe(1022);
    slots.observe("start", 1020, (lastMs + 810) * MS);
    expect(slots.current((lastMs + 810) * MS)).toBe(1022);
  });

  it("accepts an event 48 slots beyond the expected slot, and rejects 49", () => {
    for (const [slot, accepted] of [
      [100 + 24 + 48, true],
      [100 + 24 + 49, false],
    ] as const) {
      const { slots } = setUp();
      for (let count = 0; count < 47; count += 1) slots.observe("start", 100, 0);
      slots.observe("start", slot, MS);
      expect(slots.current(MS)).toBe(accepted ? slot : 100);
    }
  });

  it("ignores far-future slots that a minority of events repeats", () => {
    const { slots, counters } = setUp();
    let nowMs = observeStarts(slots, 1000, 48, 250);
    for (let index = 0; index < 40; index += 1) {
      slots.observe("start", 1048 + index, nowMs * MS);
      slots.observe("end", 1048 + index, (nowMs + 200) * MS);
      slots.observe("start", 9_000_000 + index, (nowMs + 201) * MS);
      expect(slots.current((nowMs + 201) * MS)).toBe(1049 + index);
      nowMs += 250;
    }
    expect(counters.slotEventsFarAhead).toBeGreaterThanOrEqual(40);
  });

  it("ignores far-future events right after the first poll", () => {
    const { slots } = setUp();
    slots.observe("polled", 1000, 0);
    for (let index = 0; index < 10; index += 1) {
      slots.observe("start", 500_000 + index, (index + 1) * MS);
    }
    expect(slots.current(11 * MS)).toBe(1000);
    slots.observe("start", 1001, 12 * MS);
    expect(slots.current(12 * MS)).toBe(1001);
    expect(slots.slotTimeMs).toBe(250);
  });

  it("accepts a jump once a full history of events agrees on it", () => {
    const { slots } = setUp();
    slots.observe("polled", 1000, 0);
    observeStarts(slots, 5000, 60, 250, 1);
    expect(slots.current(60 * 250 * MS)).toBeGreaterThanOrEqual(5059);
  });

  it("becomes null after too long without events, and returns with the next event", () => {
    const { slots } = setUp();
    const lastMs = observeStarts(slots, 1000, 20, 250) - 250;
    expect(slots.current((lastMs + 240 * 250) * MS)).toBe(1019);
    expect(slots.current((lastMs + 241 * 250) * MS)).toBeNull();
    expect(slots.nextSlotNs((lastMs + 241 * 250) * MS)).toBeNull();
    slots.observe("start", 1300, (lastMs + 300 * 250) * MS);
    expect(slots.current((lastMs + 300 * 250) * MS)).toBe(1300);
  });

  it("is the cluster's slot again with the first event after 25 s", () => {
    const { slots, counters } = setUp();
    const lastMs = observeStarts(slots, 1000, 20, 250) - 250;
    expect(slots.current((lastMs + 25_000) * MS)).toBe(1019);
    slots.observe("start", 1090, (lastMs + 25_001) * MS);
    expect(slots.current((lastMs + 25_001) * MS)).toBe(1090);
    expect(counters).toMatchObject({ slotRewinds: 0, slotStalls: 0 });
  });

  it("does not follow a stuck node that repeats one slot", () => {
    const { slots } = setUp();
    const lastMs = observeStarts(slots, 1000, 20, 250) - 250;
    for (let ms = 400; ms <= 61_000; ms += 400) {
      slots.observe("polled", 1019, (lastMs + ms) * MS);
    }
    expect(slots.current((lastMs + 61_000) * MS)).toBeNull();
  });

  it("follows a cluster that restarted from an older slot", () => {
    const { slots, counters } = setUp();
    const afterMs = observeStarts(slots, 100_000, 60, 250);
    observeStarts(slots, 500, 60, 250, afterMs);
    expect(slots.current((afterMs + 59 * 250) * MS)).toBe(559);
    expect(counters.slotRewinds).toBe(1);
  });

  it("recovers after a majority of false events", () => {
    const { slots } = setUp();
    const afterMs = observeStarts(slots, 1000, 48, 250);
    observeStarts(slots, 7_000_000, 40, 1, afterMs);
    expect(slots.current((afterMs + 40) * MS)).toBeGreaterThan(6_000_000);
    observeStarts(slots, 1048, 60, 250, afterMs + 41);
    expect(slots.current((afterMs + 41 + 59 * 250) * MS)).toBe(1107);
  });

  it("has the time at which the next slot is due", () => {
    const { slots } = setUp();
    const lastMs = observeStarts(slots, 1000, 20, 250) - 250;
    expect(slots.nextSlotNs((lastMs + 10) * MS)).toBe((lastMs + 250) * MS);
    expect(slots.nextSlotNs((lastMs + 600) * MS)).toBe((lastMs + 750) * MS);
  });
});

describe("slot at a time", () => {
  it("is the slot in progress at that time, also after a later one has started", () => {
    const { slots } = setUp();
    expect(slots.at(0)).toBeNull();
    slots.observe("start", 1000, 0);
    slots.observe("start", 1001, 400 * MS);
    expect(slots.current(410 * MS)).toBe(1001);
    expect([399 * MS, 400 * MS].map((ns) => slots.at(ns))).toEqual([1000, 1001]);
  });

  it("is corrected by a later announcement if the current slot was ahead", () => {
    const { slots } = setUp();
    const atMs = observeStarts(slots, 1000, 20, 400) - 400;
    expect(slots.current((atMs + 430) * MS)).toBe(1020);
    expect(slots.at((atMs + 430) * MS)).toBe(1020);
    slots.observe("start", 1020, (atMs + 450) * MS);
    expect(slots.at((atMs + 430) * MS)).toBe(1019);
    expect(slots.at((atMs + 450) * MS)).toBe(1020);
  });

  it("follows a cluster that restarted from an older slot", () => {
    const { slots } = setUp();
    const atMs = observeStarts(slots, 1000, 20, 400) + 60_000;
    slots.observe("start", 500, atMs * MS);
    slots.observe("start", 501, (atMs + 400) * MS);
    expect(slots.current((atMs + 400) * MS)).toBe(501);
    expect(slots.at((atMs + 400) * MS)).toBe(501);
    expect(slots.at((atMs - 1) * MS)).toBeNull();
  });

  it("is ahead only while a source that is ahead has a vote", () => {
    const { slots } = setUp();
    for (let slot = 1000; slot < 1060; slot += 1) {
      const nowNs = (slot - 1000) * 400 * MS;
      // One node counts 40 slots too many, and goes silent after 20.
      if (slot < 1020) slots.observe("start", slot + 40, nowNs, "grpc");
      slots.observe("start", slot, nowNs, "slot");
      // A time just before the announcement may be queried after it.
      if (slot < 1040) continue;
      expect(slots.at(nowNs - MS)).toBeLessThanOrEqual(slot);
      expect(slots.at(nowNs + 100 * MS)).toBe(slot);
    }
  });
});

describe("slot time", () => {
  it("is the default until it is measured", () => {
    const { slots } = setUp();
    expect(slots.slotTimeMs).toBe(250);
    observeStarts(slots, 1000, 4, 400);
    expect(slots.slotTimeMs).toBe(250);
    observeStarts(slots, 1004, 1, 400, 1600);
    expect(slots.slotTimeMs).toBeCloseTo(400);
  });

  it("is also measured over skipped slots", () => {
    const { slots } = setUp();
    for (let slot = 0; slot < 60; slot += 3) slots.observe("start", slot, slot * 200 * MS);
    expect(slots.slotTimeMs).toBeCloseTo(200);
  });

  it("is a median, so single late starts do not move it", () => {
    const { slots } = setUp();
    for (let slot = 0; slot < 40; slot += 1) {
      slots.observe("start", slot, (slot * 250 + (slot % 5 === 0 ? 90 : 0)) * MS);
    }
    expect(slots.slotTimeMs).toBeCloseTo(250);
  });

  it("stays within 100 and 1000 ms", () => {
    const fast = setUp().slots;
    observeStarts(fast, 0, 20, 5);
    expect(fast.slotTimeMs).toBe(100);
    const slow = setUp().slots;
    observeStarts(slow, 0, 20, 5000);
    expect(slow.slotTimeMs).toBe(1000);
  });

  it("is measured from polled slots alone, over long spans", () => {
    const { slots } = setUp();
    for (let ms = 0; ms < 100_000; ms += 400) {
      slots.observe("polled", Math.floor(ms / 300), ms * MS);
    }
    expect(slots.slotTimeMs).toBeGreaterThan(285);
    expect(slots.slotTimeMs).toBeLessThan(315);
  });
});

describe("arbitrary slot events", () => {
  it("never throw, and never move the slot back while gaps are at most 200 ms", () => {
    const event = fc.record({
      kind: fc.constantFrom("start" as const, "end" as const, "polled" as const),
      slot: fc.oneof(fc.integer({ min: 0, max: 3000 }), fc.double(), fc.maxSafeInteger()),
      gapMs: fc.integer({ min: 0, max: 200 }),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const { slots } = setUp();
        let nowMs = 0;
        let before = -1;
        for (const each of events) {
          nowMs += each.gapMs;
          slots.observe(each.kind, each.slot, nowMs * MS);
          const current = slots.current(nowMs * MS);
          if (current === null) continue;
          expect(current).toBeGreaterThanOrEqual(before);
          before = current;
        }
      }),
    );
  });

  it("keep the slot within 2 of the real one with jitter, skips and 20 % false events", () => {
    const jitter = fc.array(fc.integer({ min: 0, max: 120 }), { minLength: 200, maxLength: 200 });
    const noise = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 200, maxLength: 200 });
    fc.assert(
      fc.property(jitter, noise, (late, noiseValues) => {
        const { slots } = setUp();
        slots.observe("polled", 10_000, 0);
        for (let index = 0; index < 200; index += 1) {
          const atNs = (index * 300 + (late[index] ?? 0)) * MS;
          const noiseValue = noiseValues[index] ?? 0;
          if (noiseValue < 2) slots.observe("start", 10_000 + index + 1_000_000, atNs);
          if (noiseValue !== 9) slots.observe("start", 10_000 + index, atNs);
          const distance = (slots.current(atNs) ?? 0) - (10_000 + index);
          expect(Math.abs(distance)).toBeLessThanOrEqual(2);
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe("slot clock without a measured slot time", () => {
  /** The clock's maximum lead over the real slot, sampled every 10 ms. */
  function maxLead(slots: ReturnType<typeof createSlotClock>, eventsMs: readonly number[]): number {
    let lead = Number.NEGATIVE_INFINITY;
    for (let ms = 0; ms <= 4_000; ms += 10) {
      const truth = 1_000 + Math.floor(ms / 400);
      if (eventsMs.includes(ms)) slots.observe("polled", truth, ms * MS, "polling");
      lead = Math.max(lead, (slots.current(ms * MS) ?? 0) - truth);
    }
    return lead;
  }

  it("is never ahead of a network with 400 ms slots, the slowest", () => {
    expect(maxLead(setUp().slots, [0, 2_000, 4_000])).toBe(0);
  });

  it("extrapolates with a hinted slot time", () => {
    const { slots } = setUp();
    expect(slots.slotTimeMs).toBe(250);
    slots.hint(200);
    slots.observe("polled", 1_000, 0);
    expect(slots.slotTimeMs).toBe(200);
    expect(slots.current(1_000 * MS)).toBe(1_005);
  });

  it("ignores hints out of range, and all hints once it has measured", () => {
    const { slots } = setUp();
    for (const ms of [0, -1, 99, 1_001, Number.NaN, Number.POSITIVE_INFINITY]) slots.hint(ms);
    expect(slots.slotTimeMs).toBe(250);
    observeStarts(slots, 1_000, 10, 300);
    slots.hint(200);
    expect(slots.slotTimeMs).toBe(300);
  });
});
