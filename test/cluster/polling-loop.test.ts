import { describe, expect, it } from "vitest";
import { createPollLoop } from "../../src/cluster/polling-loop.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** Runs the continuations of settled promises. */
async function settle(): Promise<void> {
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

describe("a refresh", () => {
  it("does its thing at once and then when the last success said", async () => {
    const { clock, loop, calls } = setUp([700, 300]);
    expect(loop.status()).toEqual({ ageMs: null, failures: 0 });
    loop.start();
    await settle();
    expect(calls()).toBe(1);
    clock.advance(699);
    await settle();
    expect(calls()).toBe(1);
    expect(loop.status()).toEqual({ ageMs: 699, failures: 0 });
    clock.advance(1);
    await settle();
    expect(calls()).toBe(2);
    loop.stop();
  });

  it("backs off while it fails, keeps the age of the last success, and recovers", async () => {
    const fault = new Error("away");
    const { clock, loop, failures, calls } = setUp([50, fault, fault, fault, fault, 900]);
    loop.start();
    for (const waitMs of [50, 100, 200, 400, 400]) {
      await settle();
      clock.advance(waitMs);
    }
    expect(loop.status()).toEqual({ ageMs: 1150, failures: 4 });
    await settle();
    expect(failures).toEqual([1, 2, 3, 4]);
    expect(calls()).toBe(6);
    expect(loop.status()).toEqual({ ageMs: 0, failures: 0 });
    loop.stop();
  });

  it("leaves nothing behind when it is stopped, even in the middle of a try", async () => {
    const { clock, loop, failures, calls } = setUp([new Error("away")]);
    loop.start();
    loop.stop();
    await settle();
    expect(clock.pending).toBe(0);
    expect(failures).toEqual([]);
    expect(calls()).toBe(1);
  });

  it("is hastened, but begun once in the set time at most", async () => {
    const { clock, loop, calls } = setUp([60_000, 60_000, 60_000]);
    loop.pollNow(10_000);
    expect(calls()).toBe(0);
    loop.start();
    await settle();
    clock.advance(4_000);
    for (let times = 0; times < 5; times += 1) loop.pollNow(10_000);
    clock.advance(5_999);
    await settle();
    expect(calls()).toBe(1);
    clock.advance(1);
    await settle();
    expect(calls()).toBe(2);
    clock.advance(30_000);
    loop.pollNow(10_000);
    clock.advance(0);
    await settle();
    expect(calls()).toBe(3);
    clock.advance(59_999);
    await settle();
    expect(calls()).toBe(3);
    clock.advance(1);
    await settle();
    expect(calls()).toBe(4);
    loop.stop();
    loop.pollNow(10_000);
    clock.advance(60_000);
    expect(calls()).toBe(4);
  });

  it("is done once more when it is hastened while one is in hand", async () => {
    const { clock, loop, calls } = setUp([60_000, 60_000]);
    loop.start();
    loop.pollNow(10_000);
    await settle();
    expect(calls()).toBe(1);
    clock.advance(10_000);
    await settle();
    expect(calls()).toBe(2);
    clock.advance(59_999);
    await settle();
    expect(calls()).toBe(2);
    loop.stop();
  });
});
