/**
 * The slot clock with Alpenglow, whose cluster may stand still and use slot numbers again: nodes
 * that lag or fall silent then, and windows that are skipped, which must look like neither.
 */

import { describe, expect, it } from "vitest";
import { RouteCounters } from "../../src/route/counters.ts";
import { createSlotClock } from "../../src/route/slots.ts";
import { BEFORE, FEEDS, type Feeds, FIRST, MS, run } from "./slot-fixture.ts";

/** Slot times in milliseconds. */
const SLOTS_MS = [200, 250, 400];

describe("windows that are skipped", () => {
  describe.each(SLOTS_MS)("with slots of %d ms", (slotMs) => {
    const lags: readonly (readonly [string, Feeds])[] = [4, 6, 8, 12, 16].flatMap((slots) => {
      const replayMs = slots * slotMs;
      return [
        [`${slots} slots late`, { slotsUpdates: { replayMs } }],
        [`${slots} slots late, jitter`, { slotsUpdates: { replayMs, ends: true, jitterMs: 120 } }],
        [
          `${slots} slots late, two feeds`,
          { slotsUpdates: { replayMs, ends: true }, slot: { lateMs: replayMs } },
        ],
      ] as const;
    });
    const origins = { slotsUpdates: "a", slot: "a" };

    it.each(lags)("never set the clock back with one node whose replay is %s", (_, feeds) => {
      for (const skipped of [4, 8]) {
        const result = run(feeds, { slotMs, skipped }, origins);
        // Five times, the slot after both windows is reported up to 120 ms late.
        expect(result.offMs).toBeLessThanOrEqual(skipped === 8 ? 300 : 0);
        expect(result.counters).toMatchObject({ slotRewinds: 0, slotStalls: 0 });
      }
    });

    it.each(FEEDS)("two in a row do not look like a standstill with %s", (_, feeds) => {
      // The last slot of a window, and both windows after it; once.
      const result = run(feeds, { slotMs, place: 3, skipped: 8, after: 40 });
      expect(result.offMs).toBeLessThanOrEqual(slotMs);
      expect(result.counters).toMatchObject({ slotRewinds: 0, slotStalls: 0 });
    });
  });
});

describe("a cluster that stands still, with one node whose replay is late", () => {
  it.each([6, 8, 12, 16, 24])("by %d slots, is followed within 1 s", (slots) => {
    for (const slotMs of SLOTS_MS) {
      for (const stallMs of [3_000, 9_000]) {
        const feeds = { slotsUpdates: { replayMs: slots * slotMs } };
        const result = run(feeds, { stallMs, slotMs });
        expect(result.offMs, `${slotMs} ${stallMs}`).toBeLessThan(1_000);
        expect(result.counters.slotRewinds).toBe(0);
      }
    }
  });
});

describe("a second node that is late", () => {
  const origins = { grpc: "a", slotsUpdates: "b" };

  describe.each([500, 1_000, 1_500, 2_000, 3_000, 4_000])("by %d ms", (lateMs) => {
    it.each([2_000, 3_000, 4_500, 9_000, 20_000])("does not hold a stall of %d ms", (stallMs) => {
      for (const slotMs of SLOTS_MS) {
        for (const late of [{ lateMs }, { lateMs, ends: true, jitterMs: 120 }]) {
          const result = run({ grpc: {}, slotsUpdates: late }, { stallMs, slotMs }, origins);
          expect(result.offMs, `${slotMs}`).toBeLessThan(1_000);
          expect(result.farAheadMs).toBe(0);
          expect(Math.abs(result.last)).toBeLessThanOrEqual(1);
        }
      }
    });

    it.each([8, 40, 100])("does not hold a clock that goes back %d slots", (again) => {
      for (const slotMs of SLOTS_MS) {
        const result = run({ grpc: {}, slotsUpdates: { lateMs } }, { again, slotMs }, origins);
        expect(result.offMs, `${slotMs}`).toBeLessThan(1_000);
        expect(Math.abs(result.last)).toBeLessThanOrEqual(1);
        expect(result.counters.slotRewinds).toBe(1);
      }
    });
  });
});

describe("a second node with three late feeds", () => {
  const origins = { grpc: "a", slotsUpdates: "b", slot: "b", polling: "b" };
  const feedsOf = (lateMs: number): Feeds => ({
    grpc: { jitterMs: 60 },
    slotsUpdates: { lateMs },
    slot: { lateMs: lateMs + 200 },
    polling: { everyMs: 2_000, lateMs },
  });

  describe.each([1_000, 1_655, 2_575, 3_500])("by %d ms", (lateMs) => {
    it.each([
      [8, 0],
      [8, 1_600],
      [40, 0],
      [40, 700],
      [100, 0],
    ])("does not hold a clock that goes back %d slots, %d ms later", (again, stallMs) => {
      for (const slotMs of SLOTS_MS) {
        for (const place of [0, 1, 2, 3]) {
          const scenario = { again, stallMs, slotMs, place };
          const result = run(feedsOf(lateMs), scenario, origins);
          // The standstill before takes its time, too.
          expect(result.offMs, `${slotMs} ${place}`).toBeLessThan(stallMs === 0 ? 1_000 : 1_300);
          expect(Math.abs(result.last)).toBeLessThanOrEqual(1);
          expect(result.counters.slotRewinds).toBe(1);
        }
      }
    });
  });
});

describe("a migration after 2 s in which no slot begins", () => {
  // The standstill before takes half a second of it, and polls each 2 s up to another two.
  const feeds: readonly (readonly [string, Feeds, number])[] = [
    ...FEEDS.map(([name, each]) => [name, each, 1_400] as const),
    ["a node that is 1 s late", { grpc: {}, slotsUpdates: { lateMs: 1_000 } }, 1_400],
    ["a node that is 3 s late", { grpc: {}, slotsUpdates: { lateMs: 3_000 } }, 1_400],
    ["rare polls of another node", { slotsUpdates: {}, polling: { everyMs: 2_000 } }, 2_300],
    ["the same and ends", { slotsUpdates: { ends: true }, polling: { everyMs: 2_000 } }, 2_300],
  ];

  it.each(feeds)("is followed, and the clock is right then, with %s", (_, each, offMs) => {
    for (const slotMs of [200, 400]) {
      for (const again of [8, 100]) {
        for (const place of [0, 3]) {
          for (const stallMs of [0, 2_060]) {
            const scenario = { again, stallMs, slotMs, place, likelyMs: 5_400 };
            const result = run(each, scenario, { slotsUpdates: "a", slot: "a", polling: "b" });
            const isStill = stallMs > 0 || offMs > 2_000;
            expect(result.offMs, `${slotMs} ${again}`).toBeLessThan(isStill ? offMs : 1_000);
            expect(Math.abs(result.last)).toBeLessThanOrEqual(1);
            expect(result.counters.slotRewinds).toBeLessThanOrEqual(2);
          }
        }
      }
    }
  });

  it("is followed also if the first confirmation comes before that, with a late node", () => {
    for (const again of [8, 40, 100]) {
      const feeds = { grpc: {}, slotsUpdates: { lateMs: 3_000 } };
      const scenario = { again, stallMs: 2_060, slotMs: 400, likelyMs: 400 };
      const result = run(feeds, scenario, { grpc: "a", slotsUpdates: "b" });
      expect(result.offMs).toBeLessThan(1_400);
      expect(Math.abs(result.last)).toBeLessThanOrEqual(1);
    }
  });
});

describe("a second node that is silent", () => {
  const origins = { grpc: "a", slotsUpdates: "b", slot: "b", polling: "b" };
  const endMs = (slotMs: number) => (BEFORE + 1) * slotMs;

  it.each([8, 40, 100])("does not hold a clock that goes back %d slots", (again) => {
    for (const slotMs of SLOTS_MS) {
      for (const silentMs of [1, 300, 600, 1_000, 2_000, 5_000]) {
        const untilMs = endMs(slotMs) - silentMs;
        for (const silent of [
          { slotsUpdates: { untilMs } },
          { polling: { everyMs: 400, untilMs } },
          { slotsUpdates: { untilMs }, slot: { lateMs: 120, untilMs } },
        ] satisfies Feeds[]) {
          const result = run({ grpc: {}, ...silent }, { again, slotMs }, origins);
          expect(result.offMs, `${slotMs} ${silentMs}`).toBeLessThan(1_000);
          expect(Math.abs(result.last)).toBeLessThanOrEqual(1);
          expect(result.counters.slotRewinds).toBe(1);
        }
      }
    }
  });
});

describe("a node that lies about slots used again while a window is skipped", () => {
  it.each([8, 40, 100])("by %d, holds the clock until the honest node's next slot", (again) => {
    const fromMs = (BEFORE + 1) * 250;
    const lies = Array.from({ length: 100 }, (_, index) => ({
      source: "slotsUpdates" as const,
      kind: "start" as const,
      slot: FIRST + BEFORE + 1 - again + index,
      atMs: fromMs + index * 250,
    }));
    const before = Array.from({ length: BEFORE + 1 }, (_, index) => ({
      ...{ source: "slotsUpdates" as const, kind: "start" as const, slot: FIRST + index },
      atMs: index * 250,
    }));
    const scenario = { skipped: 4, after: 40 };
    const result = run({ grpc: {} }, scenario, {}, [...before, ...lies]);
    expect(result.offMs).toBeLessThanOrEqual(500);
    expect(result.last).toBe(0);
  });
});

describe("polls of a load balancer, one of whose two nodes is ten slots behind", () => {
  it("set the clock back once at most in 10 minutes", () => {
    const counters = new RouteCounters();
    const clock = createSlotClock({}, counters);
    let seed = 7;
    let offMs = 0;
    for (let ms = 0; ms < 600_000; ms += 400) {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      const slot = FIRST + Math.floor(ms / 250);
      const isBehind = seed > 1_073_741_824;
      clock.observe("polled", isBehind ? slot - 10 : slot, ms * MS, "polling");
      if (Math.abs((clock.current(ms * MS) ?? 0) - slot) > 4) offMs += 400;
    }
    expect(counters.slotRewinds).toBeLessThanOrEqual(1);
    expect(offMs).toBeLessThan(20_000);
  });
});

describe("polls alone", () => {
  it.each([8, 40, 100])("follow %d slots used again within 1 s", (again) => {
    for (const slotMs of SLOTS_MS) {
      for (const lateMs of [0, 20, 100]) {
        const result = run({ polling: { everyMs: 400, lateMs } }, { again, slotMs });
        expect(result.offMs, `${slotMs} ${lateMs}`).toBeLessThan(1_000);
        expect(result.counters.slotRewinds).toBe(1);
      }
    }
  });
});
