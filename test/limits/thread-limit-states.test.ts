import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { CACHED_KEYS_MAX } from "../../src/limits/bounds.ts";
import { charged, waitNs } from "../../src/limits/gcra.ts";
import {
  createKeyCacheMemory,
  keyUsedMarks,
  LIMIT_STATES_MAX,
  ThreadLimitStates,
} from "../../src/limits/thread-limit-states.ts";
import { fc } from "../support/properties.ts";
import { until } from "../support/wait.ts";

const SECOND = 1_000_000_000;
/** Ten days of uptime. */
const NOW = 864_000 * SECOND + 123_457;
const [ARRIVED, START, THROUGH, GIVEN_BACK, DONE] = [0, 1, 2, 3, 4];

describe("a cell", () => {
  it("is charged as the plain algorithm computes, and refunded what was charged", () => {
    const step = fc.record({
      gap: fc.integer({ min: 0, max: 400 }),
      interval: fc.integer({ min: 1, max: 300 }),
      burst: fc.integer({ min: 1, max: 20 }),
      isGivenBack: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const limitStates = new ThreadLimitStates(createKeyCacheMemory());
        let [now, fullNs] = [NOW, 0];
        for (const { gap, interval, burst, isGivenBack } of steps) {
          now += gap;
          const wait = waitNs(fullNs, now, interval, burst);
          expect(limitStates.waitNs(7, now, interval, burst)).toBe(wait);
          expect(limitStates.tryCharge(7, now, interval, burst)).toBe(wait);
          if (wait > 0) continue;
          fullNs = charged(fullNs, now, interval);
          if (isGivenBack) {
            fullNs -= interval;
            limitStates.refund(7, interval);
          }
          expect(limitStates.fullNsOf(7)).toBe(fullNs);
        }
        expect([6, 8].map((limitSlot) => limitStates.fullNsOf(limitSlot))).toEqual([0, 0]);
      }),
    );
  });

  it("holds any state: slow plans reach beyond whole nanoseconds", () => {
    const limitStates = new ThreadLimitStates(createKeyCacheMemory());
    for (const fullNs of [0, 1, NOW, 2 ** 53, 1e21]) {
      limitStates.set(3, fullNs);
      expect(limitStates.fullNsOf(3)).toBe(fullNs);
    }
  });

  it("overlaps neither the marks nor another slot", () => {
    const memory = createKeyCacheMemory();
    const limitStates = new ThreadLimitStates(memory);
    const marks = keyUsedMarks(memory);
    marks.fill(1);
    expect(limitStates.fullNsOf(LIMIT_STATES_MAX - 1)).toBe(0);
    limitStates.set(LIMIT_STATES_MAX - 1, NOW);
    expect(marks).toHaveLength(CACHED_KEYS_MAX);
    expect(marks.every((mark) => mark === 1)).toBe(true);
    expect(new ThreadLimitStates(memory).fullNsOf(LIMIT_STATES_MAX - 1)).toBe(NOW);
  });
});

describe("a slot that three threads charge in parallel", () => {
  it.each([0, 3])("lets through exactly the burst (one in %i is refunded)", async (every) => {
    const [tries, interval, burst, limitSlot] = [150_000, 1_000, 200_000, 5];
    const memory = createKeyCacheMemory();
    const words = new Int32Array(new SharedArrayBuffer(5 * 4));
    const workerData = {
      ...{ memory, words, limitSlot, tries, nowNs: NOW, interval, burst },
      refundEvery: every,
    };
    const entry = new URL("../support/limit-charger.mjs", import.meta.url);
    const workers = [1, 2].map(() => new Worker(entry, { workerData }));
    const failure = Promise.race(workers.map((worker) => once(worker, "error")));
    const failed = failure.then(([error]) => Promise.reject(error));
    await Promise.race([until("two threads", () => words[ARRIVED] === 2), failed]);
    const limitStates = new ThreadLimitStates(memory);
    Atomics.store(words, START, 1);
    Atomics.notify(words, START);
    let mine = 0;
    for (let attempt = 0; attempt < tries; attempt += 1) {
      if (limitStates.tryCharge(limitSlot, NOW, interval, burst) === 0) mine += 1;
    }
    await Promise.race([until("their ends", () => words[DONE] === 2), failed]);
    const charges = mine + (words[THROUGH] ?? 0) - (words[GIVEN_BACK] ?? 0);
    expect(limitStates.fullNsOf(limitSlot)).toBe(NOW + charges * interval);
    if (every === 0) expect(charges).toBe(burst);
    else expect(charges).toBeLessThanOrEqual(burst);
    expect(mine).toBeGreaterThan(0);
    await Promise.all(workers.map((worker) => worker.terminate()));
  });
});
