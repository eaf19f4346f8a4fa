import { describe, expect, it } from "vitest";
import { createPollLoop } from "../../src/cluster/polling-loop.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** Lets the continuations of settled promises run. */
async function flushMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

function setUp(outcomes: (number | Error)[]) {
  const clock = createFakeClock();
  const failures: number[] = [];
  let calls = 0;
  const loop = createPollLoop({
    clock,
    backOff: { firstMs: 100, maxMs: 400, random: () => 1 },
    async poll() {
      const outcome = outcomes[calls] ?? 1000;
      calls += 1;
      if (outcome instanceof Error) throw outcome;
      return outcome;
    },
    onFailure: (_error, count) => failures.push(count),
  });
  return { clock, loop, failures, calls: () => calls };
}

describe("polling loop", () => {
  it("polls immediately, then after the wait that the last poll returned", async () => {
    const { clock, loop, calls } = setUp([700, 300]);
    loop.start();
    await flushMicrotasks();
    expect(calls()).toBe(1);
    clock.advance(699);
    await flushMicrotasks();
    expect(calls()).toBe(1);
    clock.advance(1);
    await flushMicrotasks();
    expect(calls()).toBe(2);
    loop.stop();
  });

  it("backs off while it fails, and recovers", async () => {
    const failure = new Error("unavailable");
    const { clock, loop, failures, calls } = setUp([50, failure, failure, failure, failure, 900]);
    loop.start();
    for (const waitMs of [50, 100, 200, 400, 400]) {
      await flushMicrotasks();
      clock.advance(waitMs);
    }
    await flushMicrotasks();
    expect(failures).toEqual([1, 2, 3, 4]);
    expect(calls()).toBe(6);
    loop.stop();
  });

  it("cancels its timer when stopped, even during a poll", async () => {
    const { clock, loop, failures, calls } = setUp([new Error("unavailable")]);
    loop.start();
    loop.stop();
    await flushMicrotasks();
    expect(clock.pending).toBe(0);
    expect(failures).toEqual([]);
    expect(calls()).toBe(1);
  });

  it("polls early after pollNow, but at most once per interval", async () => {
    const { clock, loop, calls } = setUp([60_000, 60_000, 60_000]);
    loop.pollNow(10_000);
    expect(calls()).toBe(0);
    loop.start();
    await flushMicrotasks();
    clock.advance(4_000);
    for (let call = 0; call < 5; call += 1) loop.pollNow(10_000);
    clock.advance(5_999);
    await flushMicrotasks();
    expect(calls()).toBe(1);
    clock.advance(1);
    await flushMicrotasks();
    expect(calls()).toBe(2);
    clock.advance(30_000);
    loop.pollNow(10_000);
    clock.advance(0);
    await flushMicrotasks();
    expect(calls()).toBe(3);
    clock.advance(59_999);
    await flushMicrotasks();
    expect(calls()).toBe(3);
    clock.advance(1);
    await flushMicrotasks();
    expect(calls()).toBe(4);
    loop.stop();
    loop.pollNow(10_000);
    clock.advance(60_000);
    expect(calls()).toBe(4);
  });

  it("polls once more after a pollNow during a poll", async () => {
    const { clock, loop, calls } = setUp([60_000, 60_000]);
    loop.start();
    loop.pollNow(10_000);
    await flushMicrotasks();
    expect(calls()).toBe(1);
    clock.advance(10_000);
    await flushMicrotasks();
    expect(calls()).toBe(2);
    clock.advance(59_999);
    await flushMicrotasks();
    expect(calls()).toBe(2);
    loop.stop();
  });
});
