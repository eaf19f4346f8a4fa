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
    const reached = <T>(ask: () => Promise<T>): Promise<T> =>
      cutOff.has(index) ? Promise.reject(new Error("cut off")) : ask();
    const store: LimitStore = {
      ...state,
      spend: (spent) => reached(() => state.spend(spent)),
      heartbeat: (edge, aliveMs) => reached(() => state.heartbeat(edge, aliveMs)),
    };
    const limits = createGlobalLimits({ clock, log: silent, store }, options);
    limits.start();
    return limits;
  });
  const settle = async (ms: number) => {
    clock.advance(ms);
    for (let turn = 0; turn < 200; turn += 1) {
      await Promise.resolve();
      clock.advance(0);
    }
  };
  /** Counts the requests allowed now at one edge. */
  const pass = (edge: number, most = 1_000): number => {
    const limits = edges[edge];
    let passed = 0;
    const nowNs = clock.nowNs();
    while (limits !== undefined && passed < most && limits.tryCharge("a", plan, nowNs) === 0) {
      passed += 1;
    }
    return passed;
  };
  return { clock, edges, state, cutOff, settle, pass };
}

describe("one limit on several edges", () => {
  it("lets the plan's burst through at once, and tells the wait for the next", async () => {
    const { edges, settle, pass, clock } = createFixture(5);
    await settle(0);
    expect(pass(0)).toBe(20);
    expect(edges[0]?.waitNs("a", plan, clock.nowNs())).toBe(INTERVAL_NS);
  });

  it("knows after a round what passed elsewhere", async () => {
    const { settle, pass } = createFixture(2);
    await settle(0);
    expect(pass(0)).toBe(20);
    pass(1, 1);
    await settle(100);
    expect(pass(1)).toBe(0);
  });

  it("gives the plan's rate to all together in the long run, bursts paid back", async () => {
    const { settle, pass } = createFixture(5);
    await settle(0);
    let passed = 0;
    const seconds = 60;
    for (let step = 0; step < seconds * 10; step += 1) {
      for (let edge = 0; edge < 5; edge += 1) passed += pass(edge);
      await settle(100);
    }
    const bursts = 5 * plan.burst;
    expect(passed).toBeGreaterThanOrEqual(seconds * plan.ratePerSecond);
    expect(passed).toBeLessThanOrEqual(seconds * plan.ratePerSecond + bursts);
  });

  it("costs nothing when it refuses", async () => {
    const { settle, pass } = createFixture(1);
    await settle(0);
    expect(pass(0)).toBe(20);
    for (let round = 0; round < 100; round += 1) expect(pass(0)).toBe(0);
    for (let round = 0; round < 10; round += 1) await settle(100);
    expect(pass(0)).toBe(10);
  });
});

describe("without the store", () => {
  it("an edge keeps to its fair share of rate and burst", async () => {
    const { settle, pass, state } = createFixture(5);
    state.up = false;
    await settle(2_000);
    expect(pass(0)).toBe(4);
    let passed = 0;
    for (let second = 0; second < 30; second += 1) {
      await settle(1_000);
      passed += pass(0);
    }
    expect(passed).toBe((30 * plan.ratePerSecond) / 5);
  });

  it("what passed is told when it is back", async () => {
    const { edges, settle, pass, state } = createFixture(2);
    await settle(0);
    state.up = false;
    await settle(2_000);
    const passed = pass(0);
    expect(passed).toBe(10);
    await settle(100);
    expect(edges[0]?.counters).toMatchObject({ connected: 0 });
    state.up = true;
    pass(1, 1);
    await settle(100);
    await settle(100);
    expect(edges[1]?.counters.connected).toBe(1);
    // Twenty, minus what both edges allowed, plus what has refilled since.
    expect(pass(1)).toBeLessThanOrEqual(20 - passed - 1 + 3);
  });
});

describe("a store that fails once", () => {
  it("is asked again in the next round, and the whole limit holds again", async () => {
    const { edges, settle, pass, state } = createFixture(5);
    await settle(0);
    pass(0, 1);
    state.up = false;
    await settle(100);
    expect(edges[0]?.counters.connected).toBe(0);
    state.up = true;
    await settle(100);
    expect(edges[0]?.counters.connected).toBe(1);
    expect(pass(0)).toBe(20);
  });

  it("is not told more than twice a second, where it fails whenever it is told", async () => {
    const { edges, settle, pass, state } = createFixture(1);
    await settle(0);
    let asked = 0;
    state.spend = async () => {
      asked += 1;
      throw new Error("lost");
    };
    for (let round = 0; round < 100; round += 1) {
      pass(0, 1);
      await settle(100);
    }
    expect(asked).toBeGreaterThan(15);
    expect(asked).toBeLessThanOrEqual(21);
    expect(edges[0]?.counters.failures).toBe(asked);
  });
});

describe("one edge without the store, others with it", () => {
  it("refuses nobody afterwards who is well under the limit on each", async () => {
    const { settle, pass, cutOff, edges } = createFixture(2);
    await settle(0);
    cutOff.add(0);
    for (let second = 0; second < 660; second += 1) {
      if (second === 600) cutOff.delete(0);
      expect([second, pass(0, 1), pass(1, 1)]).toEqual([second, 1, 1]);
      for (let round = 0; round < 10; round += 1) await settle(100);
    }
    expect(edges[0]?.counters.connected).toBe(1);
  });

  it("tells what its share has not paid back", async () => {
    const { settle, pass, cutOff, state } = createFixture(2);
    await settle(0);
    cutOff.add(0);
    await settle(2_000);
    for (let round = 0; round < 300; round += 1) {
      pass(0);
      await settle(100);
    }
    cutOff.delete(0);
    const { told } = state;
    for (let round = 0; round < 2; round += 1) await settle(100);
    expect(state.told - told).toBeGreaterThanOrEqual(8);
    expect(state.told - told).toBeLessThanOrEqual(10);
  });
});

describe("a store that is away without a word", () => {
  it("hears when the requests of that time began, so nobody waits for them", async () => {
    const { settle, pass, state, edges, clock } = createFixture(5);
    await settle(0);
    state.hangs = true;
    state.lagMs = 1_000;
    let passed = 0;
    for (let step = 0; step < 600; step += 1) {
      passed += pass(0);
      await settle(100);
    }
    expect(passed).toBeGreaterThan(120);
    state.hangs = false;
    state.lagMs = 0;
    for (let step = 0; step < 20; step += 1) await settle(100);
    expect(edges[0]?.counters.connected).toBe(1);
    expect(edges[0]?.waitNs("a", plan, clock.nowNs())).toBe(0);
  });

  it("counts them twice at most, however long its answers are lost", async () => {
    const { settle, pass, state, edges } = createFixture(1);
    await settle(0);
    let passed = pass(0, 5);
    state.losesResponses = true;
    for (let step = 0; step < 100; step += 1) {
      await settle(100);
      passed += pass(0, 1);
    }
    state.losesResponses = false;
    for (let step = 0; step < 3; step += 1) await settle(100);
    expect(edges[0]?.counters.connected).toBe(1);
    expect(state.told).toBeGreaterThanOrEqual(5);
    expect(state.told).toBeLessThanOrEqual(2 * passed);
  });
});

describe("a round", () => {
  /** Counts the accounts reported to the store in each event-loop turn. */
  async function turnsOf(failing: boolean) {
    const { clock, edges, state } = createFixture(1);
    const [limits] = edges;
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    for (let index = 0; index < 2 * GLOBAL_LIMITS_SENT_PER_SLICE + 1; index += 1) {
      limits?.tryCharge(`account ${index}`, plan, clock.nowNs());
    }
    const told: number[] = [];
    const { spend } = state;
    state.spend = (spent) => {
      told.push(spent.length);
      return failing ? Promise.reject(new Error("away")) : spend(spent);
    };
    clock.advance(100);
    for (let turn = 0; turn < 4; turn += 1) {
      told.push(0);
      for (let step = 0; step < 10; step += 1) await Promise.resolve();
      clock.advance(0);
    }
    return { told, limits, state };
  }

  it("asks for a share of the accounts in each turn of the event loop", async () => {
    const { told, limits, state } = await turnsOf(false);
    const share = GLOBAL_LIMITS_SENT_PER_SLICE;
    expect(told).toEqual([share, 0, share, 0, 1, 0, 0]);
    expect(limits?.counters.rounds).toBe(1);
    expect(state.told).toBe(2 * share + 1);
  });

  it("asks no more once the store is away", async () => {
    const { told, limits } = await turnsOf(true);
    expect(told).toEqual([GLOBAL_LIMITS_SENT_PER_SLICE, 0, 0, 0, 0]);
    expect(limits?.counters).toMatchObject({ rounds: 0, connected: 0 });
  });
});

describe("a plan that changes", () => {
  it("leaves what passed before at the price that it had", async () => {
    const { edges, settle, clock } = createFixture(1);
    const [limits] = edges;
    await settle(0);
    const fast = { ...plan, ratePerSecond: 500, burst: 1_000 };
    const slow = { ...plan, ratePerSecond: 1, burst: 20 };
    for (let request = 0; request < 1_000; request += 1) {
      expect(limits?.tryCharge("a", fast, clock.nowNs())).toBe(0);
    }
    expect(limits?.tryCharge("a", slow, clock.nowNs())).toBe(0);
    await settle(100);
    await settle(100);
    // Two seconds of the old plan and one of the new.
    let passed = 0;
    while (limits?.tryCharge("a", slow, clock.nowNs()) === 0) passed += 1;
    expect(passed).toBe(17);
  });
});

describe("its memory", () => {
  it("is bounded, and empty once every bucket is full again", async () => {
    const { edges, clock, settle } = createFixture(1);
    const [limits] = edges;
    const nowNs = clock.nowNs();
    for (let index = 0; index < GLOBAL_ACCOUNTS_MAX + 10; index += 1) {
      limits?.tryCharge(`account ${index}`, plan, nowNs);
    }
    expect(limits?.counters).toMatchObject({ accounts: GLOBAL_ACCOUNTS_MAX, evicted: 10 });
    for (let round = 0; round < 120; round += 1) await settle(100);
    await settle(10_000);
    for (let round = 0; round < 120; round += 1) await settle(100);
    expect(limits?.counters.accounts).toBe(0);
  });

  it("is emptied in many rounds, each of which looks at few", async () => {
    const { edges, clock, settle } = createFixture(1);
    const [limits] = edges;
    await settle(0);
    const most = 2 * GLOBAL_ROUND_MAX;
    for (let index = 0; index < 2 * most; index += 1) {
      limits?.waitNs(`account ${index}`, plan, clock.nowNs());
    }
    await settle(100);
    expect(limits?.counters.accounts).toBe(most);
    await settle(100);
    expect(limits?.counters.accounts).toBe(0);
  });
});
