/** Requirements on the real planner, sender and landing stage with simulated leaders. */

import { describe, expect, it } from "vitest";
import { SIMULATION_DEFAULTS, type SimulationOptions } from "../../../bench/simulation/options.ts";
import { report } from "../../../bench/simulation/report.ts";
import {
  quantile,
  type SimulationResult,
  SLOTS_MIN,
  simulate,
} from "../../../bench/simulation/simulate.ts";

/** A quarter of an hour, four transactions a second. */
const SHORT = { slots: 4_000, transactions: 3_600 };

const run = (options: Partial<SimulationOptions>) =>
  simulate({ ...SIMULATION_DEFAULTS, ...SHORT, ...options });

function expectBalance(result: SimulationResult, submitted: number): void {
  const { accepted, refused, landed, expired, dropped, inFlight, reasons } = result;
  expect(accepted + refused).toBe(submitted);
  expect(inFlight).toBe(0);
  expect({ accepted }).toEqual({ accepted: landed + expired + dropped });
  const reasoned = Object.values(reasons).reduce((sum, count) => sum + count, 0);
  expect({ reasoned }).toEqual({ reasoned: expired + dropped });
}

const landedShare = ({ landed, accepted, refused }: SimulationResult): number =>
  landed / (accepted + refused);

describe("a simulated cluster of 50 leaders, 250 ms slots, 100 ms round trip", () => {
  for (const seed of [1, 2, 3]) {
    it(`lands 99.9 % within 2 slots at p99 when all are honest, seed ${seed}`, async () => {
      const result = await run({ seed });
      expectBalance(result, SHORT.transactions);
      expect(landedShare(result)).toBeGreaterThanOrEqual(0.999);
      expect(quantile(result.deltas, 0.5)).toBeLessThanOrEqual(1);
      expect(quantile(result.deltas, 0.99)).toBeLessThanOrEqual(2);
    });

    it(`lands 99 % within 6 slots at p99 with a fifth out of order, seed ${seed}`, async () => {
      const result = await run({ seed, dead: 0.1, saturated: 0.1, loss: 0.02 });
      expectBalance(result, SHORT.transactions);
      expect(landedShare(result)).toBeGreaterThanOrEqual(0.99);
      expect(quantile(result.deltas, 0.99)).toBeLessThanOrEqual(6);
    });
  }

  it("lands all that reaches a leader when a fifth is dead, as early as possible", async () => {
    const result = await run({ dead: 0.2, loss: 0.02 });
    expectBalance(result, SHORT.transactions);
    expect(landedShare(result)).toBeGreaterThanOrEqual(0.99);
    // Two dead leaders in a row have eight slots without a block.
    expect(quantile(result.deltas, 0.99)).toBeLessThanOrEqual(quantile(result.floor, 0.99) + 1);
  });

  it("keeps what a fork rolled back, and lands it again", async () => {
    const result = await run({ forks: 0.2 });
    expectBalance(result, SHORT.transactions);
    expect(result.forked).toBeGreaterThan(10);
    expect(landedShare(result)).toBeGreaterThanOrEqual(0.999);
  });

  it("resends what was lost in windows without a block, until it lands", async () => {
    const result = await run({ skip: 0.6 });
    expectBalance(result, SHORT.transactions);
    expect(result.landed).toBe(SHORT.transactions);
  });

  it("ends each transaction with a reason when no leader lives", async () => {
    const result = await run({ dead: 1 });
    expectBalance(result, SHORT.transactions);
    expect(result.refused).toBe(SHORT.transactions);
  });

  it("ends each transaction with a reason when almost every packet is lost", async () => {
    const result = await run({ loss: 0.7 });
    expectBalance(result, SHORT.transactions);
    expect(result.landed).toBeGreaterThan(0);
  });
});

describe("a simulation", () => {
  const small = { ...SIMULATION_DEFAULTS, slots: SLOTS_MIN, transactions: 300, loss: 0.05 };

  it("is deterministic for a seed, and differs for another", async () => {
    const once = report(await simulate(small));
    expect(report(await simulate(small))).toEqual(once);
    expect(report(await simulate({ ...small, seed: 2 }))).not.toEqual(once);
  });

  it("rejects a run that is too short to start and to end", async () => {
    for (const slots of [0, SLOTS_MIN - 4, SLOTS_MIN + 1]) {
      await expect(simulate({ ...small, slots })).rejects.toThrow(RangeError);
    }
  });
});
