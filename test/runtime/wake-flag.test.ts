/** The wake flag wakes its thread in every interleaving. */

import { describe, expect, it } from "vitest";
import { WakeFlag, wake } from "../../src/runtime/wake-flag.ts";
import { until } from "../support/wait.ts";

describe("a wake flag", () => {
  it("runs its callback for each wake while it waits", async () => {
    let acts = 0;
    const wakeFlag = new WakeFlag(() => {
      acts += 1;
    });
    const int32 = new Int32Array(wakeFlag.memory);
    wakeFlag.start();
    for (let round = 2; round < 6; round += 1) {
      wake(int32, 0);
      await until("the act", () => acts >= round);
    }
    wakeFlag.stop();
  });

  it("loses no wake that happens during the callback", async () => {
    let acts = 0;
    const wakeFlag: WakeFlag = new WakeFlag(() => {
      acts += 1;
      if (acts < 4) wake(new Int32Array(wakeFlag.memory), 0);
    });
    wakeFlag.start();
    await until("the act", () => acts === 4);
    wakeFlag.stop();
  });

  it("is silent once stopped", async () => {
    let acts = 0;
    const wakeFlag = new WakeFlag(() => {
      acts += 1;
    });
    wakeFlag.start();
    wakeFlag.stop();
    const before = acts;
    wake(new Int32Array(wakeFlag.memory), 0);
    await new Promise((resolve) => setImmediate(resolve));
    expect(acts).toBe(before);
  });
});
