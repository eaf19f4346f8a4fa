/**
 * The slot clock on a virtual cluster that stands still, or uses slot numbers again as at the
 * migration to Alpenglow: for how long it is more than four slots off.
 */

import { describe, expect, it } from "vitest";
import { RouteCounters } from "../../src/route/counters.ts";
import { createSlotClock } from "../../src/route/slots.ts";
import {
  BEFORE,
  clusterOf,
  driven,
  eventsOf,
  FEEDS,
  FIRST,
  MS,
  run,
  STEP_MS,
} from "./slot-fixture.ts";

describe("a cluster that stands still for 9 s", () => {
  // Before the clock stood still: 36 ahead, for 8 s more than 19, and 4.3 s of that afterwards.
  describe.each(FEEDS)("with %s", (_, feeds) => {
    it.each([
      [0, 250],
      [1, 250],
      [2, 250],
      [3, 250],
      [0, 200],
      [0, 400],
      [3, 400],
    ])("is followed within 1 s from place %d in a window, slots of %d ms", (place, slotMs) => {
      const result = run(feeds, { stallMs: 9_000, place, slotMs });
      expect(result.offMs).toBeLessThan(1_000);
      expect(result.farAheadMs).toBe(0);
      expect(result.worst).toBeLessThanOrEqual(7);
      expect(Math.abs(result.last)).toBeLessThanOrEqual(1);
      expect(result.counters).toMatchObject({ slotRewinds: 0, slotStalls: 1 });
    });
  });

  it.each([2_000, 3_000, 3_900])("%d ms long, takes no slots from late sources", (stallMs) => {
    const feeds = { grpc: {}, slotsUpdates: { lateMs: 40 }, slot: { lateMs: 180 } };
    const result = run(feeds, { stallMs });
    expect(result.offMs).toBeLessThan(1_000);
    expect(result.worst).toBeLessThanOrEqual(6);
  });

  it("goes on with any source, also long after", () => {
    const { clock } = driven(clusterOf({ after: 0 }), { grpc: {}, slot: { lateMs: 20 } });
    const startMs = BEFORE * 250 + 20_000;
    for (let at = 0; at < 8; at += 1) {
      const ns = (startMs + at * 250) * MS;
      clock.observe("start", FIRST + BEFORE + 1 + at, ns, "slot");
      expect(clock.current(ns)).toBe(FIRST + BEFORE + 1 + at);
    }
  });

  it("is not assumed while a source reports slots below its own", () => {
    const { clock } = driven(clusterOf({ after: 0 }));
    for (let ms = 0; ms < 10_000; ms += 200) {
      const ns = (BEFORE * 250 + ms) * MS;
      clock.observe("start", FIRST + 90 + ((ms / 200) % 2), ns, "slotsUpdates");
      expect(clock.current(ns)).toBe(FIRST + BEFORE + Math.min(7, Math.floor(ms / 250)));
    }
  });

  it("has no slot beyond the end of the next leader's window", () => {
    const { clock } = driven(clusterOf({ after: 0 }));
    const lastMs = BEFORE * 250;
    const slots = Array.from({ length: 80 }, (_, index) =>
      clock.current((lastMs + index * 25) * MS),
    );
    // The last slot is the first of a window.
    expect(Math.max(...slots.map((slot) => slot ?? 0))).toBe(FIRST + BEFORE + 6);
    const { clock: atEnd } = driven(clusterOf({ place: 3, after: 0 }));
    const ends = Array.from({ length: 80 }, (_, at) =>
      atEnd.current((lastMs + 750 + at * 25) * MS),
    );
    expect(Math.max(...ends.map((slot) => slot ?? 0))).toBe(FIRST + BEFORE + 3 + 4);
  });

  it("changes when nextSlotNs says so, down to the last slot and to none", () => {
    const { clock } = driven(clusterOf({ after: 0 }));
    const changes: (readonly [number, number | null])[] = [];
    let ns = BEFORE * 250 * MS;
    for (let next = clock.nextSlotNs(ns); next !== null; next = clock.nextSlotNs(ns)) {
      expect(next).toBeGreaterThan(ns);
      ns = next;
      changes.push([ns / MS - BEFORE * 250, clock.current(ns)]);
    }
    const last = FIRST + BEFORE;
    const byClock = [1, 2, 3, 4, 5, 6].map((ahead) => [ahead * 250, last + ahead] as const);
    const expected = [...byClock, [1_750, last + 4], [2_500, last], [60_250, null]];
    expect(changes).toEqual(expected);
  });

  it("keeps the slots at past times", () => {
    const { clock } = driven(clusterOf({ stallMs: 9_000 }).slice(0, BEFORE + 4));
    const lastMs = BEFORE * 250;
    const times = [-1, 0, 5_000, 9_249, 9_250, 9_500];
    const last = FIRST + BEFORE;
    const expected = [last - 1, last, last, last, last + 1, last + 2];
    expect(times.map((ms) => clock.at((lastMs + ms) * MS))).toEqual(expected);
  });
});

describe("slot numbers that are used again", () => {
  // Before, with one source: 8 slots 3 s, 40 slots 19 s, 100 slots 12 s.
  describe.each(FEEDS.slice(0, -1))("with %s", (_, feeds) => {
    it.each([
      [8, 250],
      [40, 250],
      [100, 250],
      [8, 200],
      [40, 200],
      [100, 200],
      [8, 400],
      [40, 400],
      [100, 400],
    ])("%d of them, are followed within 1 s, slots of %d ms", (again, slotMs) => {
      const result = run(feeds, { again, slotMs });
      expect(result.offMs).toBeLessThan(1_000);
      expect(Math.abs(result.last)).toBeLessThanOrEqual(1);
      expect(result.counters.slotRewinds).toBe(1);
    });
  });

  it.each([8, 40, 100])("%d of them, are followed within 1.2 s with polls alone", (again) => {
    const result = run({ polling: { everyMs: 400 } }, { again });
    expect(result.offMs).toBeLessThan(1_200);
    expect(result.counters.slotRewinds).toBe(1);
  });

  it("are followed with one poll of another node that agrees", () => {
    const { clock, counters } = driven(clusterOf({ after: 0 }));
    const poll = (slot: number, ms: number) =>
      clock.observe("polled", slot, (BEFORE * 250 + ms) * MS, "polling");
    const start = (slot: number, ms: number) =>
      clock.observe("start", slot, (BEFORE * 250 + ms) * MS, "slotsUpdates");
    poll(FIRST + BEFORE, 10);
    for (let at = 0; at < 6; at += 1) start(FIRST + 50 + at, 250 + at * 250);
    const current = () => clock.current((BEFORE * 250 + 1_510) * MS) ?? 0;
    expect(current()).toBeGreaterThan(FIRST + BEFORE);
    poll(FIRST + 55, 1_510);
    expect(current()).toBe(FIRST + 55);
    expect(counters.slotRewinds).toBe(1);
  });

  it("are followed if the other node's poll came first", () => {
    const { clock } = driven(clusterOf({ after: 0 }));
    clock.observe("polled", FIRST + BEFORE, (BEFORE * 250 + 10) * MS, "polling");
    for (let at = 0; at < 4; at += 1) {
      const ns = (BEFORE * 250 + 250 + at * 250) * MS;
      clock.observe("start", FIRST + 50 + at, ns, "slotsUpdates");
      if (at === 0) clock.observe("polled", FIRST + 50, ns + 30 * MS, "polling");
    }
    expect(clock.current((BEFORE * 250 + 1_001) * MS)).toBe(FIRST + 53);
  });

  it("let the lag of a source be measured on", () => {
    const { clock } = driven(clusterOf({ after: 0 }), { slotsUpdates: {}, slot: { lateMs: 120 } });
    const lags = () => clock.sources(0).map(({ lagMs }) => Math.round(lagMs ?? -1));
    expect(lags()).toEqual([0, 120]);
    for (let at = 0; at < 60; at += 1) {
      const ns = (BEFORE * 250 + 250 + at * 250) * MS;
      clock.observe("start", FIRST + at, ns, "slotsUpdates");
      clock.observe("start", FIRST + at, ns + 40 * MS, "slot");
    }
    expect(lags()).toEqual([0, 40]);
  });

  it("do not let the slot go back a second time with another source", () => {
    const { clock, counters } = driven(clusterOf({ after: 0 }), {
      grpc: {},
      slot: { lateMs: 700 },
    });
    let before = 0;
    for (let ms = 250; ms < 14_000; ms += 50) {
      const ns = (BEFORE * 250 + ms) * MS;
      const at = Math.floor(ms / 250) - 1;
      if (ms % 250 === 0 && at < 20) clock.observe("start", FIRST + at, ns, "grpc");
      if (ms % 250 === 200 && at >= 3) clock.observe("start", FIRST + at - 2, ns, "slot");
      const current = clock.current(ns) ?? 0;
      if (ms > 2_000) expect(current).toBeGreaterThanOrEqual(before);
      before = current;
    }
    expect(counters.slotRewinds).toBe(1);
  });

  it("are followed with the second event while the cluster confirms nothing", () => {
    const { clock } = driven(clusterOf({ after: 0 }));
    const events = (first: number, ms: number) => {
      for (const at of [0, 1]) {
        const ns = (BEFORE * 250 + ms + at * 250) * MS;
        clock.observe("start", first + at, ns, "slotsUpdates");
      }
      return clock.current((BEFORE * 250 + ms + 250) * MS);
    };
    expect(events(FIRST + 60, 250)).toBeGreaterThan(FIRST + BEFORE);
    clock.expectBack(true);
    expect(events(FIRST + 50, 1_000)).toBe(FIRST + 51);
    clock.expectBack(false);
    expect(events(FIRST + 20, 1_500)).toBeGreaterThan(FIRST + 50);
  });
});

describe("a node that lies about slots used again", () => {
  const lie = (back: number) => clusterOf({ again: back });

  it.each([
    ["subscription", { grpc: {} }],
    ["late subscription", { grpc: { lateMs: 200 } }],
    ["polls", { polling: { everyMs: 400 } }],
  ] as const)("does not pull back the clock of another node's %s", (_, honest) => {
    for (const back of [8, 40, 100]) {
      const result = run(honest, {}, {}, eventsOf({ slotsUpdates: {} }, lie(back), 250));
      expect(result.worst).toBeLessThanOrEqual(5);
      expect(result.counters.slotRewinds).toBe(0);
    }
  });

  it("does not pull it back with three sources, nor hold it, against polls each 2 s", () => {
    const origins = { slotsUpdates: "a", slot: "a", grpc: "a", polling: "b" };
    const lies = eventsOf({ slotsUpdates: {}, slot: {}, grpc: {} }, lie(40), 250);
    const result = run({ polling: { everyMs: 2_000 } }, {}, origins, lies);
    expect(result.worst).toBeLessThanOrEqual(5);
    expect(result.counters.slotRewinds).toBe(0);
  });

  it("does not pull it back with a stray event of the honest node", () => {
    const stray = { source: "grpc", kind: "start", slot: FIRST + 64, atMs: 26_010 } as const;
    const lies = [...eventsOf({ slotsUpdates: {} }, lie(40), 250), stray];
    const result = run({ grpc: {} }, {}, {}, lies);
    expect(result.worst).toBeLessThanOrEqual(5);
    expect(result.counters.slotRewinds).toBe(0);
  });
});

describe("events below the position", () => {
  /** A node repairs old slots, some at the same time and more later. */
  const repairs = (everyMs: number) =>
    Array.from({ length: 30 }, (_, index) => ({
      source: "slotsUpdates" as const,
      kind: "start" as const,
      slot: FIRST + 40 + index,
      atMs: BEFORE * 250 + 5 + index * everyMs,
    }));

  it.each([1, 20, 100, 250])("of slots that are repaired, one in %d ms, change nothing", (ms) => {
    const result = run({ slotsUpdates: {} }, {}, {}, repairs(ms));
    expect(result.worst).toBe(0);
    expect(result.counters.slotRewinds).toBe(0);
  });

  it("that come at the same time change nothing while the cluster stands still", () => {
    const result = run({ slotsUpdates: {} }, { stallMs: 1_500 }, {}, [
      ...repairs(1),
      { source: "slotsUpdates", kind: "start", slot: FIRST + 70, atMs: BEFORE * 250 + 900 },
    ]);
    expect(result.counters.slotRewinds).toBe(0);
  });

  it("that alternate with invalid ones change nothing", () => {
    const { clock, counters } = driven(clusterOf({ after: 0 }));
    for (let at = 0; at < 8; at += 1) {
      const ns = (BEFORE * 250 + at * 250) * MS;
      clock.observe("start", FIRST + 20 + at, ns, "slotsUpdates");
      clock.observe("start", Number.NaN, ns, "slotsUpdates");
    }
    expect(counters.slotRewinds).toBe(0);
  });
});

describe("a clock that followed a false source ahead", () => {
  it("follows the others within 1 s once they outvote it", () => {
    const counters = new RouteCounters();
    const clock = createSlotClock({}, counters);
    let offMs = 0;
    for (let ms = 0; ms < 20_000; ms += STEP_MS) {
      const slot = FIRST + Math.floor(ms / 250);
      if (ms % 250 === 0) {
        // It is the only source at first, and counts 30 slots too many.
        clock.observe("start", slot + 30, ms * MS, "grpc");
        if (ms >= 5_000) clock.observe("start", slot, ms * MS, "slot");
        if (ms >= 5_000) clock.observe("start", slot, (ms + 1) * MS, "slotsUpdates");
      }
      const error = (clock.current((ms + 2) * MS) ?? 0) - slot;
      if (ms >= 5_000 && Math.abs(error) > 4) offMs += STEP_MS;
    }
    expect(offMs).toBeLessThan(1_000);
    expect(counters.slotRewinds).toBe(1);
  });
});
