import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { StreamWindow } from "../../src/send/stream-window.ts";

/** A leader that grants 128 streams and reads `perInterval` per 100 ms; always more to send. */
function overloaded(perInterval: number, lengthMs: number, rttUs = 1_000) {
  const window = new StreamWindow();
  window.setCredit(128);
  let unread = 0;
  let opened = 0;
  let unreadMax = 0;
  for (let ms = 0; ms < lengthMs; ms += 10) {
    unread = Math.max(0, unread - perInterval / 10);
    while (unread < 128 && window.mayOpen(128 - unread)) {
      window.opened();
      opened += 1;
      unread += 1;
    }
    window.recordBlocked(ms * NS_PER_MS, rttUs, 128 - unread);
    if (ms > lengthMs / 2) unreadMax = Math.max(unreadMax, unread);
  }
  return { window, opened, unreadMax };
}

describe("the stream window", () => {
  it("is the leader's grant, until deliveries were blocked for a while", () => {
    const window = new StreamWindow();
    window.setCredit(128);
    window.recordBlocked(0, 1_000, 0);
    window.recordBlocked(199 * NS_PER_MS, 1_000, 0);
    expect([window.limit, window.mayOpen(1)]).toEqual([0, true]);
    window.recordBlocked(200 * NS_PER_MS, 1_000, 0);
    expect(window.limit).toBeGreaterThan(0);
    expect(window.mayOpen(1)).toBe(false);
  });

  it("limits the unread streams of a slow leader, and keeps it busy", () => {
    const { opened, unreadMax } = overloaded(20, 10_000);
    expect(unreadMax).toBeLessThanOrEqual(45);
    // 20 per 100 ms for 10 s, and what the leader has not read yet.
    expect(opened).toBeGreaterThan(2_000);
  });

  it("holds at most 350 ms of unread streams at a leader that reads 10 per 100 ms", () => {
    // A minimum of 20 per interval, as before Agave 4.4, held 42 here: 420 ms.
    const { opened, unreadMax } = overloaded(10, 10_000);
    expect(unreadMax).toBeLessThanOrEqual(35);
    expect(opened).toBeGreaterThan(1_000);
  });

  it("follows a leader from 40 per 100 ms down to 10, and up again", () => {
    const window = new StreamWindow();
    window.setCredit(128);
    let unread = 0;
    let opened = 0;
    const unreadMax = (perInterval: number, fromMs: number, toMs: number): number => {
      let most = 0;
      for (let ms = fromMs; ms < toMs; ms += 10) {
        unread = Math.max(0, unread - perInterval / 10);
        for (; unread < 128 && window.mayOpen(128 - unread); unread += 1) {
          window.opened();
          opened += 1;
        }
        window.recordBlocked(ms * NS_PER_MS, 1_000, 128 - unread);
        if (ms >= toMs - 1_000) most = Math.max(most, unread);
      }
      return most;
    };
    expect(unreadMax(40, 0, 3_000)).toBeGreaterThan(50);
    expect(unreadMax(10, 3_000, 6_000)).toBeLessThanOrEqual(35);
    opened = 0;
    unreadMax(40, 6_000, 9_000);
    expect(opened).toBeGreaterThan(0.97 * 1_200);
  });

  it("follows a leader that reads more", () => {
    const { window, opened } = overloaded(60, 10_000);
    expect(opened).toBeGreaterThan(0.97 * 6_000);
    expect(window.limit).toBeGreaterThan(60);
  });

  it("is wider on a long path, by the streams in transit", () => {
    const near = overloaded(20, 2_000, 1_000).window.limit;
    const far = overloaded(20, 2_000, 300_000).window.limit;
    expect(far).toBeGreaterThan(3 * (near - 16));
  });

  it("is reset when nothing was blocked for ten seconds", () => {
    const { window } = overloaded(20, 1_000);
    window.drained(9_000 * NS_PER_MS);
    expect(window.limit).toBeGreaterThan(0);
    window.drained(11_000 * NS_PER_MS);
    expect(window.limit).toBe(0);
  });

  it("is measured by the grant of the live connection, not by a larger earlier one", () => {
    const window = new StreamWindow();
    window.setCredit(800);
    window.recordBlocked(0, 80_000, 0);
    window.recordBlocked(200 * NS_PER_MS, 80_000, 0);
    window.setCredit(128);
    expect(window.limit).toBeGreaterThan(0);
    expect(window.mayOpen(128)).toBe(true);
  });

  it("opens again when the leader grants less than before on the same connection", () => {
    const window = new StreamWindow();
    window.setCredit(800);
    for (let ms = 0; ms <= 200; ms += 100) window.recordBlocked(ms * NS_PER_MS, 1_000, 0);
    expect(window.mayOpen(128)).toBe(false);
    for (let ms = 300; ms <= 1_100; ms += 100) window.recordBlocked(ms * NS_PER_MS, 1_000, 128);
    expect(window.mayOpen(128)).toBe(false);
    window.recordBlocked(1_200 * NS_PER_MS, 1_000, 128);
    expect(window.mayOpen(128)).toBe(true);
  });

  it("stays closed to a leader that has read nothing and has no stream left", () => {
    const window = new StreamWindow();
    window.setCredit(128);
    for (let ms = 0; ms <= 5_000; ms += 100) window.recordBlocked(ms * NS_PER_MS, 1_000, 0);
    expect(window.mayOpen(1)).toBe(false);
  });

  it("equals the grant where that is more than an engine counts", () => {
    for (const [streams, held] of [
      [1_023, true],
      [1_024, false],
      [2 ** 60, false],
    ] as const) {
      const { window } = overloaded(20, 1_000);
      window.setCredit(streams);
      // The path delays them, and none of the opened streams is granted again.
      for (let ms = 1_000; ms <= 1_800; ms += 50) {
        window.opened();
        window.recordBlocked(ms * NS_PER_MS, 80_000, streams - 200);
      }
      expect(window.mayOpen(streams - 200)).toBe(!held);
    }
  });

  it("does not limit where the engine cannot report the streams left", () => {
    const { window } = overloaded(20, 1_000);
    expect(window.mayOpen(-1)).toBe(true);
  });
});
