import { describe, expect, it } from "vitest";
import { createTicker, LOOK_LATE_MS, LOOK_SOON_MS } from "../../src/send/ticker.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setUp() {
  const clock = createFakeClock();
  const looks: number[] = [];
  const next = { waitMs: LOOK_LATE_MS };
  const startNs = clock.nowNs();
  const ticker = createTicker(clock, () => {
    looks.push((clock.nowNs() - startNs) / 1e6);
    return next.waitMs;
  });
  return { clock, looks, next, ticker };
}

describe("the ticker", () => {
  it("looks again when the look before said so, but no later than its bound", () => {
    const { clock, looks, next, ticker } = setUp();
    ticker.start();
    ticker.start();
    clock.advance(LOOK_SOON_MS);
    next.waitMs = 70;
    clock.advance(LOOK_LATE_MS);
    next.waitMs = Number.POSITIVE_INFINITY;
    clock.advance(70 + LOOK_LATE_MS);
    next.waitMs = -5;
    clock.advance(LOOK_LATE_MS);
    const [soon, late] = [LOOK_SOON_MS, LOOK_LATE_MS];
    const bounded = [2 * late, 3 * late].map((waitMs) => soon + 70 + waitMs);
    expect(looks).toEqual([soon, soon + late, soon + late + 70, ...bounded]);
    ticker.stop();
    expect(clock.pending).toBe(0);
  });

  it("looks sooner when it is told to, and never later than it would have", () => {
    const { clock, looks, next, ticker } = setUp();
    ticker.within(LOOK_SOON_MS);
    expect(clock.pending).toBe(0);
    ticker.start();
    clock.advance(LOOK_SOON_MS + 100);
    ticker.within(LOOK_SOON_MS);
    clock.advance(LOOK_SOON_MS - 1);
    ticker.within(LOOK_SOON_MS);
    expect(looks).toEqual([50]);
    clock.advance(1);
    expect(looks).toEqual([50, 200]);
    ticker.within(120);
    next.waitMs = 30;
    clock.advance(120);
    expect(looks).toEqual([50, 200, 320]);
    ticker.stop();
    ticker.within(LOOK_SOON_MS);
    expect(clock.pending).toBe(0);
  });

  it("keeps to one timer when a look calls for another", () => {
    const clock = createFakeClock();
    const ticker = createTicker(clock, () => {
      ticker.within(LOOK_SOON_MS);
      return LOOK_LATE_MS;
    });
    ticker.start();
    clock.advance(LOOK_SOON_MS);
    expect(clock.pending).toBe(1);
    ticker.stop();
    expect(clock.pending).toBe(0);
  });
});
