import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../../src/core/clock.ts";
import { RoundTrip } from "../../../src/send/portable/round-trip.ts";

const ms = (count: number): number => count * NS_PER_MS;
const SILENCE_NS = ms(10_000);

/** Eight samples in milliseconds; returns whether the last one requested `compare`. */
function measure(trip: RoundTrip, samples: readonly number[]): boolean {
  let atMs = 1;
  let asked = false;
  for (const [index, sampleMs] of samples.entries()) {
    trip.sent(2 + 4 * index, ms(atMs));
    atMs += sampleMs;
    asked = trip.heard(true, ms(atMs));
  }
  return asked;
}

describe("the round trip of a connection", () => {
  it("is the minimum of the last eight samples, so that retransmissions do not count", () => {
    const trip = new RoundTrip(SILENCE_NS);
    expect(measure(trip, [80, 900, 81, 82, 700, 80, 85, 84])).toBe(true);
    expect(trip.us).toBe(80_000);
    expect(measure(trip, [40])).toBe(false);
    expect(trip.us).toBe(40_000);
    expect(measure(trip, [95, 96, 800, 97, 95, 99, 98])).toBe(true);
    expect(trip.us).toBe(40_000);
    measure(trip, [95, 96, 800, 97, 95, 99, 98, 97]);
    expect(trip.us).toBe(95_000);
  });

  it("is measured by one transaction at a time, and by another when that one is overdue", () => {
    const trip = new RoundTrip(SILENCE_NS);
    trip.sent(2, ms(1));
    trip.sent(6, ms(50));
    expect(trip.stream).toBe(2);
    trip.sent(10, ms(2_001));
    expect(trip.stream).toBe(10);
    trip.heard(true, ms(2_081));
    expect([trip.us, trip.stream]).toEqual([80_000, -1]);
  });

  it("is measured by a ping's response where no stream is awaited", () => {
    const trip = new RoundTrip(SILENCE_NS);
    trip.pinged(ms(1));
    trip.heard(false, ms(31));
    expect(trip.us).toBe(30_000);
    trip.sent(2, ms(100));
    trip.heard(false, ms(101));
    trip.pinged(ms(102));
    trip.heard(false, ms(103));
    expect(trip.us).toBe(30_000);
    // Its response may be that of the transaction.
    trip.heard(true, ms(150));
    trip.pinged(ms(160));
    trip.sent(6, ms(161));
    trip.heard(false, ms(162));
    expect(trip.us).toBe(30_000);
  });
});

describe("a response", () => {
  it("is owed since the first unanswered send, until anything is received", () => {
    const trip = new RoundTrip(SILENCE_NS);
    expect(trip.owedNs).toBe(0);
    trip.sent(2, ms(5));
    trip.pinged(ms(6));
    expect(trip.owedNs).toBe(ms(5));
    trip.heard(false, ms(7));
    expect(trip.owedNs).toBe(0);
    trip.pinged(ms(8));
    expect(trip.owedNs).toBe(ms(8));
  });
});

describe("a connection", () => {
  it("is over after the idle timeout without a datagram in either direction", () => {
    const trip = new RoundTrip(SILENCE_NS);
    const over = (...ats: number[]) => ats.map((at) => trip.isOver(ms(at)));
    expect(over(100_000)).toEqual([false]);
    trip.heard(false, ms(100));
    expect(over(10_099, 10_100)).toEqual([false, true]);
    trip.sent(2, ms(8_000));
    trip.sent(6, ms(17_000));
    expect(over(17_999, 18_000)).toEqual([false, true]);
  });

  it("is over whatever was buffered until then", () => {
    const trip = new RoundTrip(SILENCE_NS);
    trip.sent(2, ms(100));
    expect(trip.heard(true, ms(10_100))).toBe(false);
    expect([trip.isOver(ms(10_100)), trip.us]).toEqual([true, 0]);
    trip.heard(true, ms(10_099));
    expect(trip.isOver(ms(10_100))).toBe(false);
  });
});

describe("a misjudged connection", () => {
  it("is one whose round trip quiche overestimates, while it does", () => {
    const trip = new RoundTrip(SILENCE_NS);
    measure(trip, [80, 80, 80, 80, 80, 80, 80, 80]);
    const results = [160_000, 520_000, 520_001, 98_000_000, 90_000].map((us) => {
      trip.compare(us);
      return trip.misjudged;
    });
    expect(results).toEqual([false, false, true, true, false]);
  });
});
