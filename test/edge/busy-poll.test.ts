import { describe, expect, it } from "vitest";
import { createPolling } from "../../src/edge/busy-poll.ts";
import { until } from "../support/wait.ts";

describe("busy polling", () => {
  it("keeps the event loop running until it is stopped", async () => {
    const polling = createPolling();
    polling.start();
    // No timer, no socket: a sleeping loop would iterate rarely, however long the test waits.
    await until("a thousand turns", () => polling.counters.iterations >= 1_000);
    polling.stop();
    const { iterations } = polling.counters;
    for (let count = 0; count < 3; count += 1) await new Promise((done) => setImmediate(done));
    expect(polling.counters.iterations).toBe(iterations);
  });

  it("starts once, and can be stopped before it was started", async () => {
    const polling = createPolling();
    polling.stop();
    polling.start();
    polling.start();
    for (let count = 1; count <= 3; count += 1) {
      await new Promise((done) => setImmediate(done));
      expect(polling.counters.iterations).toBe(count);
    }
    polling.stop();
    polling.stop();
    await new Promise((done) => setImmediate(done));
    expect(polling.counters.iterations).toBe(3);
  });
});
