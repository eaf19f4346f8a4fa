import { describe, expect, it } from "vitest";
import { createPollTimer, POLL_FAST_MS, POLL_SLOW_MS } from "../../src/send/poll-timer.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setUp() {
  const clock = createFakeClock();
  const looks: number[] = [];
  const next = { waitMs: POLL_SLOW_MS };
  const startNs = clock.nowNs();
  const pollTimer = createPollTimer(clock, () => {
    looks.push((clock.nowNs() - startNs) / 1e6);
    return next.waitMs;
  });
  return { clock, looks, next, pollTimer };
}

describe("the poll timer", () => {
  it("polls again when the last poll requested it, but no later than its bound", () => {
    const { clock, looks, next, pollTimer } = setUp();
    pollTimer.start();
    pollTimer.start();
    clock.advance(POLL_FAST_MS);
    next.waitMs = 70;
    clock.advance(POLL_SLOW_MS);
    next.waitMs = Number.POSITIVE_INFINITY;
    clock.advance(70 + POLL_SLOW_MS);
    next.waitMs = -5;
    clock.advance(POLL_SLOW_MS);
    const [soon, late] = [POLL_FAST_MS, POLL_SLOW_MS];
    const bounded = [2 * late, 3 * late].map((waitMs) => soon + 70 + waitMs);
    expect(looks).toEqual([soon, soon + late, soon + late + 70, ...bounded]);
    pollTimer.stop();
    expect(clock.pending).toBe(0);
  });

  it("polls sooner on request, and never later than before", () => {
    const { clock, looks, next, pollTimer } = setUp();
    pollTimer.within(POLL_FAST_MS);
    expect(clock.pending).toBe(0);
    pollTimer.start();
    clock.advance(POLL_FAST_MS + 100);
    pollTimer.within(POLL_FAST_MS);
    clock.advance(POLL_FAST_MS - 1);
    pollTimer.within(POLL_FAST_MS);
    expect(looks).toEqual([50]);
    clock.advance(1);
    expect(looks).toEqual([50, 200]);
    pollTimer.within(120);
    next.waitMs = 30;
    clock.advance(120);
    expect(looks).toEqual([50, 200, 320]);
    pollTimer.stop();
    pollTimer.within(POLL_FAST_MS);
    expect(clock.pending).toBe(0);
  });

  it("keeps to one timer when a poll requests another", () => {
    const clock = createFakeClock();
    const pollTimer = createPollTimer(clock, () => {
      pollTimer.within(POLL_FAST_MS);
      return POLL_SLOW_MS;
    });
    pollTimer.start();
    clock.advance(POLL_FAST_MS);
    expect(clock.pending).toBe(1);
    pollTimer.stop();
    expect(clock.pending).toBe(0);
  });
});
