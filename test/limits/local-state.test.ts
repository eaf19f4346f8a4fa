import { describe, expect, it } from "vitest";
import { LocalLimitStates } from "../../src/limits/local-state.ts";
import { createRng } from "../support/rng.ts";

/** Charges one limit; returns when its bucket is full again. */
function charge(states: LocalLimitStates, name: string, interval: number, nowNs: number): number {
  states.charge(name, states.of(name), interval, nowNs);
  return states.of(name)?.fullNs ?? 0;
}

describe("the states of limits", () => {
  it("are kept until their bucket is full", () => {
    const states = new LocalLimitStates(1_000);
    const rng = createRng(7);
    const fullAt = new Map<string, number>();
    for (let nowNs = 1; nowNs < 20_000; nowNs += 1) {
      const name = `a${rng.below(600)}`;
      const interval = 1 + rng.below(300);
      const due = Math.max(fullAt.get(name) ?? 0, nowNs) + interval;
      fullAt.set(name, due);
      expect(charge(states, name, interval, nowNs)).toBe(due);
    }
    expect(states.size).toBeLessThan(600);
    expect(states.evicted).toBe(0);
  });

  it("with a full bucket are evicted as fast as new ones are added", () => {
    const states = new LocalLimitStates(10_000);
    for (let place = 0; place < 3_000; place += 1) charge(states, `old ${place}`, 1_000, 0);
    expect(states.size).toBe(3_000);
    for (let place = 0; place < 3_000; place += 1) charge(states, `new ${place}`, 9_000, 1_000);
    expect(states.size).toBeLessThanOrEqual(4_500);
    for (let place = 0; place < 3_000; place += 1) charge(states, `more ${place}`, 9_000, 1_000);
    expect(states.size).toBe(6_000);
    expect(states.evicted).toBe(0);
    expect(states.of("new 2999")?.fullNs).toBe(10_000);
  });

  it("are looked at two at a time, also where all are in use and there is no room", () => {
    const states = new LocalLimitStates(1_000);
    let looks = 0;
    for (let place = 0; place < 1_000; place += 1) {
      charge(states, `a${place}`, 1e9, 0);
      const get = (): number => {
        looks += 1;
        return 1e9;
      };
      Object.defineProperty(states.of(`a${place}`), "fullNs", { get });
    }
    looks = 0;
    for (let place = 0; place < 100; place += 1) charge(states, `b${place}`, 1e9, 0);
    expect(looks).toBeLessThanOrEqual(200);
    expect(states).toMatchObject({ size: 1_000, evicted: 100 });
  });
});
