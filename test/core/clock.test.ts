import { describe, expect, it } from "vitest";
import { holdProcess, systemClock, until } from "../../src/core/clock.ts";
import { createFakeClock } from "../support/fake-clock.ts";

describe("system clock", () => {
  it("is monotonic and counts whole nanoseconds", () => {
    let last = systemClock.nowNs();
    for (let count = 0; count < 10_000; count += 1) {
      const now = systemClock.nowNs();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
    expect(Number.isInteger(last)).toBe(true);
  });

  it("reads the system's monotonic clock, which all processes share", () => {
    let closest = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 1_000; round += 1) {
      const before = Number(process.hrtime.bigint());
      const now = systemClock.nowNs();
      const after = Number(process.hrtime.bigint());
      closest = Math.min(closest, Math.max(before - now, now - after));
    }
    // Within the time that reading both clocks takes on a busy machine.
    expect(closest).toBeLessThan(50_000);
  });

  it("returns the Unix time in milliseconds", () => {
    const before = Date.now();
    const now = systemClock.unixMs();
    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThanOrEqual(Date.now());
  });

  it("fires once after a delay, not earlier", async () => {
    const startNs = systemClock.nowNs();
    await new Promise<void>((resolve) => {
      systemClock.after(5, resolve);
    });
    // Node's timers count whole milliseconds and may be up to one early.
    expect(systemClock.nowNs() - startNs).toBeGreaterThanOrEqual(4_000_000);
  });

  it("fires in the next event loop iteration for a zero delay, unless cancelled", async () => {
    const events: string[] = [];
    await new Promise<void>((resolve) => {
      setImmediate(() => events.push("before"));
      systemClock.after(0, () => events.push("fired"));
      systemClock.after(0, () => events.push("cancelled")).cancel();
      setImmediate(resolve);
    });
    expect(events).toEqual(["before", "fired"]);
  });

  it("fires repeatedly until it is cancelled", async () => {
    let count = 0;
    await new Promise<void>((resolve) => {
      const timer = systemClock.every(1, () => {
        count += 1;
        if (count < 3) return;
        timer.cancel();
        resolve();
      });
    });
    expect(count).toBe(3);
  });

  it("does not fire a cancelled timer", async () => {
    let fired = false;
    const timer = systemClock.after(1, () => {
      fired = true;
    });
    timer.cancel();
    timer.cancel();
    await new Promise<void>((resolve) => {
      systemClock.after(5, resolve);
    });
    expect(fired).toBe(false);
  });
});

describe("holdProcess", () => {
  /** The number of timers that keep this process alive; those of the system clock do not. */
  const refedTimers = (): number =>
    process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

  it("keeps the process alive until cancelled, and allows a second cancel", () => {
    const before = refedTimers();
    const timer = systemClock.after(60_000, () => {});
    expect(refedTimers()).toBe(before);
    const hold = holdProcess();
    expect(refedTimers()).toBe(before + 1);
    hold.cancel();
    hold.cancel();
    timer.cancel();
    expect(refedTimers()).toBe(before);
  });
});

describe("until", () => {
  it("ends when the condition holds, or the time is up", async () => {
    const clock = createFakeClock();
    let open = false;
    const late = until(clock, { timeoutMs: 20, periodMs: 10 }, () => false);
    const well = until(clock, { timeoutMs: 1000, periodMs: 10 }, async () => open);
    for (let i = 0; i < 5; i += 1) {
      clock.advance(10);
      open = i >= 3;
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    }
    clock.advance(10);
    expect([await late, await well]).toEqual([false, true]);
  });
});
