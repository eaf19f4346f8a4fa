import { describe, expect, it } from "vitest";
import { NS_PER_S } from "../../../src/core/clock.ts";
import { EARLY_OUTCOMES_MAX } from "../../../src/send/limits.ts";
import { EarlyOutcomes } from "../../../src/send/native/early-outcomes.ts";
import { ACKED, DROPPED, IN_FLIGHT, type StreamResult } from "../../../src/send/transport.ts";

describe("outcomes of deliveries without a record", () => {
  it("are returned once, by cell and stream, with all events", () => {
    const early = new EarlyOutcomes();
    expect(early.take(0, 1)).toBeNull();
    early.record(0, 1, IN_FLIGHT, 5);
    early.record(0, 1, ACKED, 9);
    early.record(1, 1, DROPPED, 7);
    expect(early.take(0, 2)).toBeNull();
    expect(early.take(0, 1)).toEqual({ sentNs: 5, streamResult: ACKED, endNs: 9 });
    expect(early.take(1, 1)).toEqual({ sentNs: 0, streamResult: DROPPED, endNs: 7 });
    expect([early.take(0, 1), early.size, early.expired, early.evicted]).toEqual([null, 0, 0, 0]);
  });

  it("distinguish the last streams of neighbouring cells", () => {
    const early = new EarlyOutcomes();
    early.record(3, 2 ** 32 - 1, ACKED, 1);
    early.record(4, 1, DROPPED, 2);
    expect([early.take(3, 2 ** 32 - 1)?.streamResult, early.take(4, 1)?.streamResult]).toEqual([
      ACKED,
      DROPPED,
    ]);
  });

  it("expire after a second", () => {
    const early = new EarlyOutcomes();
    early.record(0, 1, ACKED, 10);
    early.record(0, 2, ACKED, 20);
    early.expire(NS_PER_S + 9);
    expect(early.size).toBe(2);
    early.expire(NS_PER_S + 10);
    expect([early.size, early.expired, early.evicted, early.take(0, 1)]).toEqual([1, 1, 0, null]);
  });

  it("are evicted at the bound, the oldest first", () => {
    const early = new EarlyOutcomes();
    for (let stream = 1; stream <= EARLY_OUTCOMES_MAX + 1; stream += 1)
      early.record(0, stream, ACKED, 1);
    expect([early.size, early.expired, early.evicted]).toEqual([EARLY_OUTCOMES_MAX, 0, 1]);
    expect([early.take(0, 1), early.take(0, 2)?.streamResult]).toEqual([null, ACKED]);
  });

  it("match a map under random records, takes and expiry", () => {
    let state = 1;
    const random = (below: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const early = new EarlyOutcomes();
    const model = new Map<
      string,
      { sentNs: number; streamResult: StreamResult; endNs: number; sinceNs: number }
    >();
    let [nowNs, expired, evicted] = [1, 0, 0];
    for (let step = 0; step < 60_000; step += 1) {
      // First too many, then few enough to expire.
      nowNs += random(NS_PER_S / (step < 30_000 ? 8000 : 1000));
      const [cell, stream] = [random(3), (2 ** 32 - 10_000 + random(20_000)) >>> 0];
      const key = `${cell} ${stream}`;
      if (random(10) < 7) {
        const streamResult = random(2) === 0 ? IN_FLIGHT : ACKED;
        if (!model.has(key) && model.size === EARLY_OUTCOMES_MAX) {
          model.delete(model.keys().next().value ?? "");
          evicted += 1;
        }
        const known = model.get(key) ?? {
          sentNs: 0,
          streamResult: IN_FLIGHT,
          endNs: 0,
          sinceNs: nowNs,
        };
        model.set(key, known);
        if (streamResult === IN_FLIGHT) known.sentNs = nowNs;
        else Object.assign(known, { streamResult, endNs: nowNs });
        early.record(cell, stream, streamResult, nowNs);
      } else if (random(3) > 0) {
        const { sinceNs: _, ...known } = model.get(key) ?? { sinceNs: 0 };
        const found = early.take(cell, stream);
        expect(found).toEqual(model.delete(key) ? known : null);
      } else if (random(50) === 0) {
        for (const [old, { sinceNs }] of model) {
          if (nowNs - sinceNs < NS_PER_S) break;
          model.delete(old);
          expired += 1;
        }
        early.expire(nowNs);
      }
      expect(early.size).toBe(model.size);
    }
    expect([early.expired, early.evicted]).toEqual([expired, evicted]);
    expect([expired > 0, evicted > 0]).toEqual([true, true]);
  });
});
