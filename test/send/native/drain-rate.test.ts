import { describe, expect, it } from "vitest";
import { NS_PER_MS, NS_PER_S } from "../../../src/core/clock.ts";
import { TARGET_BACKLOG_MAX, TARGET_BACKLOG_MS } from "../../../src/send/limits.ts";
import { DrainRate } from "../../../src/send/native/drain-rate.ts";

/** Accepts `count` deliveries at equal distances over a span. */
function take(rate: DrainRate, count: number, fromNs: number, overMs: number): number {
  for (let index = 1; index <= count; index += 1) {
    rate.record(fromNs + (index * overMs * NS_PER_MS) / count);
  }
  return fromNs + overMs * NS_PER_MS;
}

describe("the backlog limit of a leader", () => {
  it("is the minimum where the rate is unknown or low", () => {
    const rate = new DrainRate();
    expect(rate.backlogMax(NS_PER_S)).toBe(TARGET_BACKLOG_MAX);
    const endNs = take(rate, 20, NS_PER_S, 100);
    expect(rate.backlogMax(endNs)).toBe(TARGET_BACKLOG_MAX);
  });

  it("is what it accepts in TARGET_BACKLOG_MS where that is more", () => {
    const rate = new DrainRate();
    rate.record(NS_PER_S);
    const endNs = take(rate, 3_000, NS_PER_S, 100);
    expect(rate.backlogMax(endNs)).toBe(30 * TARGET_BACKLOG_MS);
  });

  it("is measured again every tenth of a second", () => {
    const rate = new DrainRate();
    rate.record(NS_PER_S);
    let nowNs = take(rate, 3_000, NS_PER_S, 100);
    nowNs = take(rate, 999, nowNs, 99.9);
    expect(rate.backlogMax(nowNs)).toBe(30 * TARGET_BACKLOG_MS);
    nowNs = take(rate, 1, nowNs, 0.1);
    expect(rate.backlogMax(nowNs)).toBe(10 * TARGET_BACKLOG_MS);
  });

  it("stays while events are late, and is the minimum once there are none", () => {
    const rate = new DrainRate();
    rate.record(NS_PER_S);
    const nowNs = take(rate, 1_000, NS_PER_S, 100);
    expect(rate.backlogMax(nowNs + 299 * NS_PER_MS)).toBe(10 * TARGET_BACKLOG_MS);
    expect(rate.backlogMax(nowNs + 300 * NS_PER_MS)).toBe(TARGET_BACKLOG_MAX);
    take(rate, 4_000, nowNs, 400);
    expect(rate.backlogMax(nowNs + 400 * NS_PER_MS)).toBe(10 * TARGET_BACKLOG_MS);
  });

  it("ignores events of earlier spans", () => {
    const rate = new DrainRate();
    rate.record(NS_PER_S);
    const endNs = take(rate, 2_999, NS_PER_S, 99);
    rate.record(NS_PER_S / 2);
    rate.record(endNs + NS_PER_MS);
    expect(rate.backlogMax(endNs + NS_PER_MS)).toBe(30 * TARGET_BACKLOG_MS);
  });
});
