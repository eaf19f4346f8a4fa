/** Limits shared by all edges, where each edge also has other threads that charge them. */

import { describe, expect, it } from "vitest";
import { createGlobalLimits } from "../../../src/accounts/global-limits/sync.ts";
import { GLOBAL_ACCOUNTS_MAX } from "../../../src/accounts/limits.ts";
import { NS_PER_MS, NS_PER_S } from "../../../src/core/clock.ts";
import { GlobalDelegation } from "../../../src/limits/global-delegation.ts";
import { GlobalLimitStates } from "../../../src/limits/global-state.ts";
import { createKeyCacheMemory } from "../../../src/limits/thread-limit-states.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeStore } from "../../support/limit-store.ts";
import { silent } from "../../support/postgres.ts";

const plan = { name: "Shared", ratePerSecond: 10, burst: 20, shared: true };
const INTERVAL_NS = NS_PER_S / 10;

function createFixture(edgeCount: number) {
  const clock = createFakeClock();
  const store = createFakeStore(clock, edgeCount);
  const edges = Array.from({ length: edgeCount }, (_, index) => {
    const options = { edge: `e${index}`, initialEdgeCount: edgeCount };
    const limits = createGlobalLimits({ clock, log: silent, store }, options);
    const memory = createKeyCacheMemory();
    limits.join(new GlobalLimitStates(memory));
    const delegation = new GlobalDelegation(limits);
    const threadStates = new GlobalLimitStates(memory);
    const limitSlot = delegation.delegate("a", plan);
    limits.start();
    return {
      ...{ limits, delegation, limitSlot, limitStates: threadStates },
      /** Counts the requests allowed now on an ingress thread. */
      pass(max = 1_000, of = plan): number {
        let passed = 0;
        while (passed < max && threadStates.tryCharge(limitSlot, clock.nowNs(), of) === 0)
          passed += 1;
        return passed;
      },
      /** Counts the requests allowed now on the main thread. */
      passMain(max = 1_000, account = "a"): number {
        let passed = 0;
        while (passed < max && limits.tryCharge(account, plan, clock.nowNs()) === 0) passed += 1;
        return passed;
      },
    };
  });
  const [edge] = edges;
  if (edge === undefined) throw new Error("no edge");
  const advance = async (ms: number) => {
    clock.advance(ms);
    for (let turn = 0; turn < 200; turn += 1) {
      await Promise.resolve();
      clock.advance(0);
    }
  };
  return { clock, store, edges, edge, advance };
}

describe("global limit on several edges with ingress threads", () => {
  it("is shared by the main thread and the ingress threads", async () => {
    const { edge, advance, clock } = createFixture(1);
    await advance(0);
    expect(edge.pass(7)).toBe(7);
    expect(edge.passMain(3)).toBe(3);
    expect(edge.pass()).toBe(10);
    expect(edge.limits.waitNs("a", plan, clock.nowNs())).toBe(INTERVAL_NS);
    expect(edge.passMain()).toBe(0);
  });

  it("includes after one round what ingress threads of other edges allowed", async () => {
    const { edges, advance, store } = createFixture(2);
    await advance(0);
    expect(edges[0]?.pass()).toBe(20);
    edges[1]?.pass(1);
    await advance(100);
    expect(edges[1]?.pass()).toBe(0);
    expect(store.told).toBe(21);
  });

  it("allows the plan's rate in total over a minute, plus at most a burst per edge", async () => {
    const { edges, advance, store } = createFixture(5);
    await advance(0);
    store.lagMs = 30;
    let passed = 0;
    const seconds = 60;
    for (let step = 0; step < seconds * 20; step += 1) {
      for (const edge of edges) passed += edge.pass(2) + edge.passMain(1) + edge.pass();
      await advance(50);
    }
    expect(passed).toBeGreaterThanOrEqual(seconds * plan.ratePerSecond);
    expect(passed).toBeLessThanOrEqual(seconds * plan.ratePerSecond + 5 * plan.burst);
    for (const edge of edges) expect(edge.limits.counters.failures).toBe(0);
  });

  it("rejects no client that keeps to the rate, even with a burst of 1", async () => {
    const { edge, advance, store } = createFixture(1);
    const narrow = { ...plan, burst: 1 };
    await advance(0);
    store.lagMs = 30;
    for (let step = 0; step < 100; step += 1) {
      expect(edge.pass(1, narrow)).toBe(1);
      // The store receives it up to one round later; the client does not wait for that.
      await advance(105);
    }
  });

  it("loses no charge made while the store's response is pending", async () => {
    const { edge, advance, store, clock } = createFixture(1);
    await advance(0);
    store.lagMs = 40;
    expect(edge.pass(4)).toBe(4);
    await advance(100);
    expect(edge.pass(5)).toBe(5);
    await advance(40);
    const spentNs = edge.limitStates.fullNsOf(edge.limitSlot) - clock.nowNs();
    // Nine, minus the refill of 140 ms; since the store was queried, charges count as usual.
    expect(spentNs).toBe(9 * INTERVAL_NS - 140 * NS_PER_MS);
    for (let round = 0; round < 3; round += 1) await advance(100);
    expect(store.told).toBe(9);
  });
});

describe("global limit of ingress threads without the store", () => {
  it("is this edge's share of rate and burst, and the full limit later", async () => {
    const { edge, store, advance } = createFixture(5);
    await advance(0);
    store.up = false;
    await advance(2_000);
    expect(edge.pass()).toBe(4);
    let passed = 0;
    for (let second = 0; second < 30; second += 1) {
      await advance(1_000);
      passed += edge.pass(1) + edge.passMain();
    }
    expect(passed).toBe((30 * plan.ratePerSecond) / 5);
    store.up = true;
    for (let round = 0; round < 3; round += 1) await advance(100);
    // The rest is paid for by then, at this edge's share of the rate.
    expect(store.told).toBe(4);
    expect(edge.pass()).toBe(20 - 4 + 1);
  });
});

describe("released bucket", () => {
  it("keeps its state, also when it is delegated again", async () => {
    const { edge, advance, store } = createFixture(1);
    await advance(0);
    expect(edge.pass(15)).toBe(15);
    edge.delegation.release("a");
    expect(edge.passMain(2)).toBe(2);
    edge.delegation.delegate("a", plan);
    expect(edge.pass()).toBe(3);
    expect(edge.passMain()).toBe(0);
    await advance(100);
    expect(store.told).toBe(20);
  });

  it("is reported in full if it is released during a round", async () => {
    const { edge, advance, store } = createFixture(1);
    await advance(0);
    store.lagMs = 40;
    edge.pass(4);
    await advance(100);
    edge.pass(5);
    edge.delegation.release("a");
    edge.passMain(1);
    await advance(40);
    // Ten were allowed and 140 ms have passed.
    expect(edge.passMain()).toBe(11);
    for (let round = 0; round < 2; round += 1) await advance(200);
    expect(store.told).toBe(21);
  });

  it("is kept until it is full again, and then dropped", async () => {
    const { edge, advance } = createFixture(1);
    await advance(0);
    edge.pass(15);
    edge.delegation.release("a");
    expect(edge.limits.counters.accounts).toBe(1);
    for (let round = 0; round < 30; round += 1) await advance(100);
    expect(edge.limits.counters.accounts).toBe(0);
    expect(edge.passMain()).toBe(20);
  });
});

describe("delegated bucket", () => {
  it("stays without use and without reports, and keeps its limit", async () => {
    const { edge, advance, store } = createFixture(1);
    await advance(0);
    edge.pass(3);
    for (let round = 0; round < 600; round += 1) await advance(100);
    expect(edge.limits.counters.accounts).toBe(0);
    const { rounds } = edge.limits.counters;
    expect(rounds).toBeLessThan(10);
    expect([edge.pass(12), edge.passMain(), edge.pass()]).toEqual([12, 8, 0]);
    await advance(100);
    expect([store.told, edge.limits.counters.rounds]).toEqual([23, rounds + 1]);
  });

  it("stays and is reported while other accounts are evicted", async () => {
    const { edge, advance, store, clock } = createFixture(1);
    await advance(0);
    edge.pass();
    await advance(100);
    edge.pass(1);
    const nowNs = clock.nowNs();
    for (let index = 0; index < GLOBAL_ACCOUNTS_MAX + 10; index += 1) {
      edge.limits.tryCharge(`account ${index}`, plan, nowNs);
    }
    expect(edge.limits.counters).toMatchObject({ accounts: GLOBAL_ACCOUNTS_MAX, evicted: 10 });
    expect(edge.pass()).toBe(0);
    expect(edge.passMain()).toBe(0);
    for (let round = 0; round < 110; round += 1) await advance(100);
    expect(store.told).toBe(21 + GLOBAL_ACCOUNTS_MAX);
  });

  it("charges the price of its newest plan", async () => {
    const { edge, advance, clock } = createFixture(1);
    await advance(0);
    const slow = { ...plan, ratePerSecond: 1 };
    expect(edge.delegation.delegate("a", slow)).toBe(edge.limitSlot);
    expect(edge.pass(2, slow)).toBe(2);
    await advance(100);
    expect(edge.limitStates.fullNsOf(edge.limitSlot)).toBe(clock.nowNs() + 1_900 * NS_PER_MS);
  });
});
