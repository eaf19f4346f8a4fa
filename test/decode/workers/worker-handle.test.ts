import { describe, expect, it } from "vitest";
import { DECODE_ERROR } from "../../../src/core/decode-errors.ts";
import { WORKER_RESTART_MS_MAX } from "../../../src/decode/limits.ts";
import { died, ids, startedStage, until } from "../../support/decode-stage.ts";
import { newPacket } from "../../support/packets.ts";

describe("a worker handle, when its thread dies", () => {
  it("reports results written before, and an error for the rest", async () => {
    const { accept, responses, workers, dispatch } = await startedStage({ inline: "never" });
    for (let id = 1; id <= 8; id += 1) accept(newPacket(id));
    workers.started[0]?.work(1);
    workers.started[0]?.die();
    await until(() => responses.length === 4);
    expect(responses.map((response) => response.errorCode)).toEqual([null, ...died(3)]);
    expect(dispatch.counters).toMatchObject({ deaths: 1, lost: 3 });
    workers.started[1]?.work();
    await until(() => responses.length === 8);
    expect(ids(responses).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it("accepts nothing until another thread is up, despite wake-ups", async () => {
    const { accept, responses, clock, workers, dispatch } = await startedStage({ inline: "never" });
    workers.started[0]?.die();
    await until(() => dispatch.counters.deaths === 1);
    for (const id of [1, 2]) {
      accept(newPacket(id));
      workers.started[1]?.work();
      await until(() => responses.length === id);
      expect(dispatch.workersUp).toBe(1);
    }
    clock.advance(100);
    workers.started[2]?.comeUp();
    await until(() => dispatch.workersUp === 2);
  });

  it("restarts after a delay that doubles, up to its bound", async () => {
    const { clock, workers, dispatch } = await startedStage({ workers: 1 });
    let waitMs = 100;
    for (let death = 1; death <= 12; death += 1) {
      workers.started.at(-1)?.die();
      await until(() => dispatch.counters.deaths === death);
      clock.advance(waitMs - 1);
      expect(workers.started).toHaveLength(death);
      clock.advance(1);
      expect(workers.started).toHaveLength(death + 1);
      waitMs = Math.min(waitMs * 2, WORKER_RESTART_MS_MAX);
    }
  });

  it("passes transactions to the new thread once it is up, and forgets old deaths", async () => {
    const { accept, responses, clock, workers, dispatch } = await startedStage({
      inline: "never",
      workers: 1,
    });
    workers.started[0]?.die();
    await until(() => dispatch.workersUp === 0);
    clock.advance(100);
    accept(newPacket(1));
    expect(responses[0]?.errorCode).toBe(DECODE_ERROR.ring_full);
    workers.started[1]?.comeUp();
    await until(() => dispatch.workersUp === 1);
    accept(newPacket(2));
    workers.started[1]?.work();
    await until(() => responses.length === 2);
    expect(responses[1]?.kind).toBe("accepted");
    clock.advance(61_000);
    workers.started[1]?.die();
    await until(() => dispatch.counters.deaths === 2);
    clock.advance(100);
    expect(workers.started).toHaveLength(3);
  });
});
