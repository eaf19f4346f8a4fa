/** The bell wakes its thread, however the ringing falls. */

import { describe, expect, it } from "vitest";
import { Bell, wake } from "../../src/runtime/wake-flag.ts";
import { until } from "../support/wait.ts";

describe("a bell", () => {
  it("has its act run for each ringing while it sleeps", async () => {
    let acts = 0;
    const bell = new Bell(() => {
      acts += 1;
    });
    const word = new Int32Array(bell.memory);
    bell.start();
    for (let round = 2; round < 6; round += 1) {
      wake(word, 0);
      await until("the act", () => acts >= round);
    }
    bell.stop();
  });

  it("loses no ringing that falls into the act itself", async () => {
    let acts = 0;
    const bell: Bell = new Bell(() => {
      acts += 1;
      if (acts < 4) wake(new Int32Array(bell.memory), 0);
    });
    bell.start();
    await until("the act", () => acts === 4);
    bell.stop();
  });

  it("is silent once stopped", async () => {
    let acts = 0;
    const bell = new Bell(() => {
      acts += 1;
    });
    bell.start();
    bell.stop();
    const before = acts;
    wake(new Int32Array(bell.memory), 0);
    await new Promise((resolve) => setImmediate(resolve));
    expect(acts).toBe(before);
  });
});
