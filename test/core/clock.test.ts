import { describe, expect, it } from "vitest";
import { holdProcess, systemClock } from "../../src/core/clock.ts";

describe("the system's clock", () => {
  it("never goes backwards and counts nanoseconds", () => {
    let last = systemClock.nowNs();
    for (let count = 0; count < 10_000; count += 1) {
      const now = systemClock.nowNs();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
    expect(Number.isInteger(last)).toBe(true);
  });

  it("is that of the system's monotonic clock, which all processes share", () => {
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

  it("tells the time of day in milliseconds", () => {
    const before = Date.now();
    const now = systemClock.unixMs();
    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThanOrEqual(Date.now());
  });

  it("fires once after a delay, not before", async () => {
    const startNs = systemClock.nowNs();
    await new Promise<void>((resolve) => {
      systemClock.after(5, resolve);
    });
    // Node's timers count whole milliseconds and may be up to one early.
    expect(systemClock.nowNs() - startNs).toBeGreaterThanOrEqual(4_000_000);
  });

  it("fires in the next turn of the event loop without a delay, unless cancelled", async () => {
    const told: string[] = [];
    await new Promise<void>((resolve) => {
      setImmediate(() => told.push("before"));
      systemClock.after(0, () => told.push("fired"));
      systemClock.after(0, () => told.push("cancelled")).cancel();
      setImmediate(resolve);
    });
    expect(told).toEqual(["before", "fired"]);
  });

  it("fires again and again until it is cancelled", async () => {
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

  it("does not fire what was cancelled", async () => {
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
  /** The timers that keep this process alive; timers of the system's clock do not. */
  const timersThatHold = (): number =>
    process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

  it("keeps the process alive until it is cancelled, which may happen twice", () => {
    const before = timersThatHold();
    const timer = systemClock.after(60_000, () => {});
    expect(timersThatHold()).toBe(before);
    const hold = holdProcess();
    expect(timersThatHold()).toBe(before + 1);
    hold.cancel();
    hold.cancel();
    timer.cancel();
    expect(timersThatHold()).toBe(before);
  });
});
