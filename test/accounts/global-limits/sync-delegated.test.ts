/** Limits shared by all edges, where each edge also has other threads that charge them. */

import { describe, expect, it } from "vitest";
import { createGlobalLimits } from "../../../src/accounts/global-limits/sync.ts";
import { GLOBAL_ACCOUNTS_MAX, GLOBAL_LIMITS_READ_PER_ROUND } from "../../../src/accounts/limits.ts";
import { NS_PER_MS, NS_PER_S } from "../../../src/core/clock.ts";
import { EngineLimits } from "../../support/engine-limits.ts";
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
    const states = new EngineLimits();
    limits.join(states);
    limits.start();
    return {
      limits,
      states,
      /** Counts the requests allowed now, on any thread of the edge. */
      pass(max = 1_000, of = plan, account = "a"): number {
        let passed = 0;
        while (passed < max && states.tryCharge(account, clock.nowNs(), of) === 0) passed += 1;
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
      for (const edge of edges) passed += edge.pass(2) + edge.pass();
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
    const spentNs = edge.states.state("a").fullNs - clock.nowNs();
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
      passed += edge.pass();
    }
    expect(passed).toBe((30 * plan.ratePerSecond) / 5);
    store.up = true;
    for (let round = 0; round < 3; round += 1) await advance(100);
    // The rest is paid for by then, at this edge's share of the rate.
    expect(store.told).toBe(4);
    expect(edge.pass()).toBe(20 - 4 + 1);
  });
});

describe("a bucket that ingress threads charge", () => {
  it("is tracked from its first charge until it is full again, and then anew", async () => {
    const { edge, advance, store } = createFixture(1);
    await advance(100);
    expect(edge.limits.counters.accounts).toBe(0);
    edge.pass(15);
    await advance(100);
    expect([store.told, edge.limits.counters.accounts]).toEqual([15, 1]);
    for (let round = 0; round < 30; round += 1) await advance(100);
    expect([edge.limits.counters.accounts, edge.states.state("a").isListed]).toEqual([0, false]);
    const { rounds } = edge.limits.counters;
    for (let round = 0; round < 600; round += 1) await advance(100);
    expect(edge.limits.counters.rounds).toBe(rounds);
    expect(edge.pass()).toBe(20);
    await advance(100);
    expect(store.told).toBe(35);
  });

  it("is reported in full, also what it is charged while a round is under way", async () => {
    const { edge, advance, store } = createFixture(1);
    await advance(0);
    store.lagMs = 40;
    edge.pass(4);
    await advance(100);
    edge.pass(5);
    await advance(40);
    // Nine were allowed and 140 ms have passed.
    expect(edge.pass()).toBe(12);
    for (let round = 0; round < 3; round += 1) await advance(200);
    expect(store.told).toBeGreaterThanOrEqual(21);
  });

  it("is not taken over while as many are tracked as there may be", async () => {
    const { edge, advance } = createFixture(1);
    await advance(0);
    const count = GLOBAL_ACCOUNTS_MAX + 10;
    for (let index = 0; index < count; index += 1) edge.pass(20, plan, `account ${index}`);
    const rounds = Math.ceil(GLOBAL_ACCOUNTS_MAX / GLOBAL_LIMITS_READ_PER_ROUND) + 2;
    const held = new Set<string>();
    const { states } = edge;
    const taken = states.takeCharged.bind(states);
    states.takeCharged = (countMax) => {
      const found = taken(countMax);
      for (const { account } of found) held.add(account);
      return found;
    };
    // Within the 2 s in which none of them is full again.
    for (let round = 0; round < rounds; round += 1) await advance(1);
    expect(held.size).toBeLessThanOrEqual(GLOBAL_ACCOUNTS_MAX);
  });

  it("charges the price of its newest plan", async () => {
    const { edge, advance, clock } = createFixture(1);
    await advance(0);
    const slow = { ...plan, ratePerSecond: 1 };
    expect(edge.pass(2, slow)).toBe(2);
    await advance(100);
    expect(edge.states.state("a").fullNs).toBe(clock.nowNs() + 1_900 * NS_PER_MS);
  });
});
