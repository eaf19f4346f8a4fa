import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { Bucket, costNs } from "../../src/accounts/global-limits/bucket.ts";
import { CACHED_KEYS_MAX } from "../../src/limits/bounds.ts";
import { GLOBAL_LIMITS_MAX, GlobalLimitStates } from "../../src/limits/global-state.ts";
import {
  createKeyCacheMemory,
  DELEGATED_LIMITS_MAX,
  keyUsedMarks,
  LIMIT_STATES_MAX,
  ThreadLimitStates,
} from "../../src/limits/thread-limit-states.ts";
import { until } from "../support/wait.ts";

const SECOND = 1_000_000_000;
const NOW = 864_000 * SECOND + 123_457;
const plan = { name: "S", ratePerSecond: 10, burst: 20, shared: true };
const INTERVAL = SECOND / 10;

describe("a shared limit", () => {
  it("lets through the plan's burst and counts that, and nothing that it refuses", () => {
    const limitStates = new GlobalLimitStates(createKeyCacheMemory());
    limitStates.setEdgeCount(1);
    const waits = Array.from({ length: 25 }, () => limitStates.tryCharge(4, NOW, plan));
    expect(waits.filter((wait) => wait === 0)).toHaveLength(20);
    expect(waits.at(-1)).toBe(INTERVAL);
    expect(limitStates.waitNs(4, NOW, plan)).toBe(INTERVAL);
    expect([limitStates.countOf(4), limitStates.fullNsOf(4)]).toEqual([20, NOW + 20 * INTERVAL]);
    expect(
      [3, 5].map((limitSlot) => [limitStates.countOf(limitSlot), limitStates.fullNsOf(limitSlot)]),
    ).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });

  it("is divided by the reported number of edges, on every thread", () => {
    const memory = createKeyCacheMemory();
    const [main, front] = [new GlobalLimitStates(memory), new GlobalLimitStates(memory)];
    main.setEdgeCount(7);
    const pass = (burst: number) => {
      let passed = 0;
      while (front.tryCharge(0, NOW, { ...plan, burst }) === 0) passed += 1;
      return passed;
    };
    expect(pass(20)).toBe(2);
    expect(front.waitNs(0, NOW, plan)).toBe(7 * INTERVAL);
    // One request is allowed whatever the share.
    main.set(0, 0);
    expect(pass(3)).toBe(1);
    main.setEdgeCount(1);
    main.set(0, 0);
    expect(pass(20)).toBe(20);
  });

  it("is set anew only where it is still what it was", () => {
    const limitStates = new GlobalLimitStates(createKeyCacheMemory());
    limitStates.set(9, NOW);
    expect(limitStates.replace(9, NOW - 1, 5)).toBe(false);
    expect(limitStates.fullNsOf(9)).toBe(NOW);
    expect(limitStates.replace(9, NOW, 5)).toBe(true);
    expect(limitStates.fullNsOf(9)).toBe(5);
  });

  it("overlaps no other slot and no mark", () => {
    const memory = createKeyCacheMemory();
    const [limitStates, plain] = [new GlobalLimitStates(memory), new ThreadLimitStates(memory)];
    limitStates.setEdgeCount(1);
    const last = GLOBAL_LIMITS_MAX - 1;
    for (const limitSlot of [0, last]) limitStates.tryCharge(limitSlot, NOW, plan);
    expect([0, DELEGATED_LIMITS_MAX - 1].map((limitSlot) => plain.fullNsOf(limitSlot))).toEqual([
      0, 0,
    ]);
    expect(plain.fullNsOf(LIMIT_STATES_MAX - 1)).toBe(NOW + INTERVAL);
    const marks = keyUsedMarks(memory);
    expect(marks.every((mark) => mark === 0)).toBe(true);
    marks.fill(1);
    expect(marks).toHaveLength(CACHED_KEYS_MAX);
    expect([
      limitStates.countOf(last),
      limitStates.waitNs(last, NOW, { ...plan, burst: 1 }),
    ]).toEqual([1, INTERVAL]);
  });
});

describe("a shared limit that three threads charge", () => {
  it("admits only the burst while the store responds repeatedly", async () => {
    const [limitSlot, burst] = [5, 300_000];
    const fast = { ...plan, ratePerSecond: 1_000_000, burst };
    const memory = createKeyCacheMemory();
    const words = new Int32Array(new SharedArrayBuffer(5 * 4));
    const [ARRIVED, START, THROUGH, ROUNDS, DONE] = [0, 1, 2, 3, 4];
    const limitStates = new GlobalLimitStates(memory);
    limitStates.setEdgeCount(1);
    const bucket = new Bucket(costNs(fast));
    bucket.delegate(limitStates, limitSlot, NOW);
    const workerData = { memory, words, limitSlot, nowNs: NOW, plan: fast };
    const entry = new URL("../support/shared-charger.mjs", import.meta.url);
    const workers = [1, 2].map(() => new Worker(entry, { workerData }));
    const threads = workers.length;
    const failure = Promise.race(workers.map((worker) => once(worker, "error")));
    const failed = failure.then(([error]) => Promise.reject(error));
    await Promise.race([until("two threads", () => words[ARRIVED] === 2), failed]);
    Atomics.store(words, START, 1);
    Atomics.notify(words, START);
    let [mine, told, rounds] = [0, 0, 0];
    const through = () => mine + (words[THROUGH] ?? 0);
    /** The store knows what was reported to it, and time stands still. */
    const round = (): void => {
      const asked = bucket.take("a", NOW).count;
      for (let attempt = 0; attempt < 50; attempt += 1) {
        if (bucket.tryCharge(fast, NOW, 1) === 0) mine += 1;
      }
      told += asked;
      bucket.settle(NOW, told * bucket.intervalNs, NOW);
      bucket.look(NOW);
      rounds += 1;
    };
    const used = until("a limit that is used up", () => {
      for (let turn = 0; turn < 200; turn += 1) round();
      return through() >= burst - threads;
    });
    await Promise.race([used, failed]);
    const seen = words[ROUNDS] ?? 0;
    const more = until("more attempts", () => {
      round();
      return (words[ROUNDS] ?? 0) > seen + 100;
    });
    await Promise.race([more, failed]);
    Atomics.store(words, DONE, 1);
    await Promise.all(workers.map((worker) => once(worker, "exit")));
    for (const _ of [1, 2]) round();
    // Each thread may have been sampled after it counted a request and before it rejected it.
    expect(through()).toBeLessThanOrEqual(burst);
    expect(told).toBeGreaterThanOrEqual(through());
    expect(told).toBeLessThanOrEqual(through() + threads);
    expect(limitStates.fullNsOf(limitSlot)).toBe(NOW + told * bucket.intervalNs);
    // The next requests compensate for that.
    const laterNs = NOW + 2 * burst * bucket.intervalNs;
    for (let charge = 0; charge < 10; charge += 1) mine += bucket.tryCharge(fast, laterNs, 1) + 1;
    expect(told + bucket.take("a", laterNs).count).toBe(through());
    expect(Math.min(mine, words[THROUGH] ?? 0, rounds)).toBeGreaterThan(0);
  });
});
