import { describe, expect, it } from "vitest";
import { createTimeoutScan } from "../../../src/send/portable/timeout-scan.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

describe("the one timer of all connections", () => {
  it("scans within 5 ms of a touch, once for any number of touches", () => {
    const clock = createFakeClock();
    let sweeps = 0;
    const timeoutScan = createTimeoutScan(clock, () => {
      sweeps += 1;
      return -1;
    });
    for (let count = 0; count < 100; count += 1) timeoutScan.touch();
    expect(clock.pending).toBe(1);
    clock.advance(5);
    expect(sweeps).toBe(1);
    clock.advance(1_000);
    expect(sweeps).toBe(1);
  });

  it("scans when the next connection is due, and sooner when one is touched", () => {
    const clock = createFakeClock();
    let sweeps = 0;
    const timeoutScan = createTimeoutScan(clock, () => {
      sweeps += 1;
      return 100;
    });
    timeoutScan.touch();
    clock.advance(5);
    clock.advance(50);
    timeoutScan.touch();
    clock.advance(5);
    expect(sweeps).toBe(2);
    clock.advance(99);
    expect(sweeps).toBe(2);
    clock.advance(1);
    expect(sweeps).toBe(3);
    timeoutScan.stop();
    expect(clock.pending).toBe(0);
  });
});
