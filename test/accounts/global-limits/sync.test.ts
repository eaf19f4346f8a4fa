import { describe, expect, it } from "vitest";
import { createGlobalLimits, type LimitStore } from "../../../src/accounts/global-limits/sync.ts";
import {
  GLOBAL_ACCOUNTS_MAX,
  GLOBAL_LIMITS_SENT_PER_SLICE,
  GLOBAL_ROUND_MAX,
} from "../../../src/accounts/limits.ts";
import { NS_PER_S } from "../../../src/core/clock.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeStore } from "../../support/limit-store.ts";
import { silent } from "../../support/postgres.ts";

const plan = { name: "Shared", ratePerSecond: 10, burst: 20, shared: true };
const INTERVAL_NS = NS_PER_S / 10;

function createFixture(edgeCount: number) {
  const clock = createFakeClock();
  const state = createFakeStore(clock, edgeCount);
  /** Edges that cannot reach the store, while the others can. */
  const cutOff = new Set<number>();
  const edges = Array.from({ length: edgeCount }, (_, index) => {
    const options = { edge: `e${index}`, initialEdgeCount: edgeCount };
    const reached = <T>(request: () => Promise<T>): Promise<T> =>
      cutOff.has(index) ? Promise.reject(new Error("cut off")) : request();
    const store: LimitStore = {
      ...state,
      spend: (spent) => reached(() => state.spend(spent)),
      heartbeat: (edge, aliveMs) => reached(() => state.heartbeat(edge, aliveMs)),
    };
    const limits = createGlobalLimits({ clock, log: silent, store }, options);
    limits.start();
    return limits;
  });
  const advance = async (ms: number) => {
    clock.advance(ms);
    for (let turn = 0; turn < 200; turn += 1) {
      await Promise.resolve();
      clock.advance(0);
    }
  };
  /** Counts the requests allowed now at one edge. */
  const pass = (edge: number, max = 1_000): number => {
    const limits = edges[edge];
    let passed = 0;
    const nowNs = clock.nowNs();
    while (limits !== undefined && passed < max && limits.tryCharge("a", plan, nowNs) === 0) {
      passed += 1;
    }
    return passed;
  };
  return { clock, edges, state, cutOff, advance, pass };
}

describe("global limit on several edges", () => {
  it("allows the plan's burst immediately, and returns the wait for the next request", async () => {
    const { edges, advance, pass, clock } = createFixture(5);
    await advance(0);
    expect(pass(0)).toBe(20);
    expect(edges[0]?.waitNs("a", plan, clock.nowNs())).toBe(INTERVAL_NS);
  });

  it("includes after one round what other edges allowed", async () => {
    const { advance, pass } = createFixture(2);
    await advance(0);
    expect(pass(0)).toBe(20);
    pass(1, 1);
    await advance(100);
    expect(pass(1)).toBe(0);
  });

  it("allows the plan's rate in total over a minute, plus at most a burst per edge", async () => {
    const { advance, pass } = createFixture(5);
    await advance(0);
    let passed = 0;
    const seconds = 60;
    for (let step = 0; step < seconds * 10; step += 1) {
      for (let edge = 0; edge < 5; edge += 1) passed += pass(edge);
      await advance(100);
    }
    const bursts = 5 * plan.burst;
    expect(passed).toBeGreaterThanOrEqual(seconds * plan.ratePerSecond);
    expect(passed).toBeLessThanOrEqual(seconds * plan.ratePerSecond + bursts);
  });

  it("charges nothing for rejected requests", async () => {
    const { advance, pass } = createFixture(1);
    await advance(0);
    expect(pass(0)).toBe(20);
    for (let round = 0; round < 100; round += 1) expect(pass(0)).toBe(0);
    for (let round = 0; round < 10; round += 1) await advance(100);
    expect(pass(0)).toBe(10);
  });
});

describe("global limit without the store", () => {
  it("is a fair share of rate and burst for each edge", async () => {
    const { advance, pass, state } = createFixture(5);
    state.up = false;
    await advance(2_000);
    expect(pass(0)).toBe(4);
    let passed = 0;
    for (let second = 0; second < 30; second += 1) {
      await advance(1_000);
      passed += pass(0);
    }
    expect(passed).toBe((30 * plan.ratePerSecond) / 5);
  });

  it("includes the requests allowed meanwhile when the store is back", async () => {
    const { edges, advance, pass, state } = createFixture(2);
    await advance(0);
    state.up = false;
    await advance(2_000);
    const passed = pass(0);
    expect(passed).toBe(10);
    await advance(100);
    expect(edges[0]?.counters).toMatchObject({ connected: 0 });
    state.up = true;
    pass(1, 1);
    await advance(100);
    await advance(100);
    expect(edges[1]?.counters.connected).toBe(1);
    // Twenty, minus what both edges allowed, plus what has refilled since.
    expect(pass(1)).toBeLessThanOrEqual(20 - passed - 1 + 3);
  });
});

describe("failing store", () => {
  it("receives a request in the next round, and then the full limit applies again", async () => {
    const { edges, advance, pass, state } = createFixture(5);
    await advance(0);
    pass(0, 1);
    state.up = false;
    await advance(100);
    expect(edges[0]?.counters.connected).toBe(0);
    state.up = true;
    await advance(100);
    expect(edges[0]?.counters.connected).toBe(1);
    expect(pass(0)).toBe(20);
  });

  it("receives at most two requests per second while each one fails", async () => {
    const { edges, advance, pass, state } = createFixture(1);
    await advance(0);
    let requests = 0;
    state.spend = async () => {
      requests += 1;
      throw new Error("lost");
    };
    for (let round = 0; round < 100; round += 1) {
      pass(0, 1);
      await advance(100);
    }
    expect(requests).toBeGreaterThan(15);
    expect(requests).toBeLessThanOrEqual(21);
    expect(edges[0]?.counters.failures).toBe(requests);
  });
});

describe("edge that cannot reach the store, while others can", () => {
  it("rejects no client afterwards that is well under the limit on each edge", async () => {
    const { advance, pass, cutOff, edges } = createFixture(2);
    await advance(0);
    cutOff.add(0);
    for (let second = 0; second < 660; second += 1) {
      if (second === 600) cutOff.delete(0);
      expect([second, pass(0, 1), pass(1, 1)]).toEqual([second, 1, 1]);
      for (let round = 0; round < 10; round += 1) await advance(100);
    }
    expect(edges[0]?.counters.connected).toBe(1);
  });

  it("reports what its share has not refilled", async () => {
    const { advance, pass, cutOff, state } = createFixture(2);
    await advance(0);
    cutOff.add(0);
    await advance(2_000);
    for (let round = 0; round < 300; round += 1) {
      pass(0);
      await advance(100);
    }
    cutOff.delete(0);
    const before = state.told;
    for (let round = 0; round < 2; round += 1) await advance(100);
    expect(state.told - before).toBeGreaterThanOrEqual(8);
    expect(state.told - before).toBeLessThanOrEqual(10);
  });
});

describe("store that stops responding", () => {
  it("receives the times of the requests, so that no client waits for them", async () => {
    const { advance, pass, state, edges, clock } = createFixture(5);
    await advance(0);
    state.hangs = true;
    state.lagMs = 1_000;
    let passed = 0;
    for (let step = 0; step < 600; step += 1) {
      passed += pass(0);
      await advance(100);
    }
    expect(passed).toBeGreaterThan(120);
    state.hangs = false;
    state.lagMs = 0;
    for (let step = 0; step < 20; step += 1) await advance(100);
    expect(edges[0]?.counters.connected).toBe(1);
    expect(edges[0]?.waitNs("a", plan, clock.nowNs())).toBe(0);
  });

  it("counts requests at most twice while its responses are lost", async () => {
    const { advance, pass, state, edges } = createFixture(1);
    await advance(0);
    let passed = pass(0, 5);
    state.losesResponses = true;
    for (let step = 0; step < 100; step += 1) {
      await advance(100);
      passed += pass(0, 1);
    }
    state.losesResponses = false;
    for (let step = 0; step < 3; step += 1) await advance(100);
    expect(edges[0]?.counters.connected).toBe(1);
    expect(state.told).toBeGreaterThanOrEqual(5);
    expect(state.told).toBeLessThanOrEqual(2 * passed);
  });
});

describe("sync round", () => {
  /** The accounts in each request to the store, with a 0 at the end of each iteration. */
  async function batchSizesOf(failing: boolean) {
    const { clock, edges, state } = createFixture(1);
    const [limits] = edges;
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    for (let index = 0; index < 2 * GLOBAL_LIMITS_SENT_PER_SLICE + 1; index += 1) {
      limits?.tryCharge(`account ${index}`, plan, clock.nowNs());
    }
    const batchSizes: number[] = [];
    const { spend } = state;
    state.spend = (spent) => {
      batchSizes.push(spent.length);
      return failing ? Promise.reject(new Error("unavailable")) : spend(spent);
    };
    clock.advance(100);
    for (let turn = 0; turn < 4; turn += 1) {
      batchSizes.push(0);
      for (let step = 0; step < 10; step += 1) await Promise.resolve();
      clock.advance(0);
    }
    return { batchSizes, limits, state };
  }

  it("sends up to GLOBAL_LIMITS_SENT_PER_SLICE accounts per event loop iteration", async () => {
    const { batchSizes, limits, state } = await batchSizesOf(false);
    const share = GLOBAL_LIMITS_SENT_PER_SLICE;
    expect(batchSizes).toEqual([share, 0, share, 0, 1, 0, 0]);
    expect(limits?.counters.rounds).toBe(1);
    expect(state.told).toBe(2 * share + 1);
  });

  it("sends no more once the store fails", async () => {
    const { batchSizes, limits } = await batchSizesOf(true);
    expect(batchSizes).toEqual([GLOBAL_LIMITS_SENT_PER_SLICE, 0, 0, 0, 0]);
    expect(limits?.counters).toMatchObject({ rounds: 0, connected: 0 });
  });
});

describe("changed plan", () => {
  it("keeps earlier requests at their old price", async () => {
    const { edges, advance, clock } = createFixture(1);
    const [limits] = edges;
    await advance(0);
    const fast = { ...plan, ratePerSecond: 500, burst: 1_000 };
    const slow = { ...plan, ratePerSecond: 1, burst: 20 };
    for (let request = 0; request < 1_000; request += 1) {
      expect(limits?.tryCharge("a", fast, clock.nowNs())).toBe(0);
    }
    expect(limits?.tryCharge("a", slow, clock.nowNs())).toBe(0);
    await advance(100);
    await advance(100);
    // Two seconds of the old plan and one of the new.
    let passed = 0;
    while (limits?.tryCharge("a", slow, clock.nowNs()) === 0) passed += 1;
    expect(passed).toBe(17);
  });
});

describe("memory of the global limits", () => {
  it("is limited to GLOBAL_ACCOUNTS_MAX, and empty once every bucket is full again", async () => {
    const { edges, clock, advance } = createFixture(1);
    const [limits] = edges;
    const nowNs = clock.nowNs();
    for (let index = 0; index < GLOBAL_ACCOUNTS_MAX + 10; index += 1) {
      limits?.tryCharge(`account ${index}`, plan, nowNs);
    }
    expect(limits?.counters).toMatchObject({ accounts: GLOBAL_ACCOUNTS_MAX, evicted: 10 });
    for (let round = 0; round < 120; round += 1) await advance(100);
    await advance(10_000);
    for (let round = 0; round < 120; round += 1) await advance(100);
    expect(limits?.counters.accounts).toBe(0);
  });

  it("is freed over several rounds with a limited number of checks each", async () => {
    const { edges, clock, advance } = createFixture(1);
    const [limits] = edges;
    await advance(0);
    const perRound = 2 * GLOBAL_ROUND_MAX;
    for (let index = 0; index < 2 * perRound; index += 1) {
      limits?.waitNs(`account ${index}`, plan, clock.nowNs());
    }
    await advance(100);
    expect(limits?.counters.accounts).toBe(perRound);
    await advance(100);
    expect(limits?.counters.accounts).toBe(0);
  });
});
