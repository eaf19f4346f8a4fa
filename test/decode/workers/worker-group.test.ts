import { describe, expect, it } from "vitest";
import { DECODE_ERROR } from "../../../src/core/decode-errors.ts";
import { WORKERS_STOP_MS_MAX } from "../../../src/decode/limits.ts";
import { died, ids, newStage, nextTurn, startedStage, until } from "../../support/decode-stage.ts";
import { newPacket } from "../../support/packets.ts";

describe("a worker group", () => {
  it("fails to start when a worker dies before it is up", async () => {
    const { dispatch, workers } = newStage();
    const started = dispatch.start();
    workers.started[0]?.comeUp();
    workers.started[1]?.die(new Error("no such file"));
    await nextTurn();
    workers.started[0]?.finish();
    await expect(started).rejects.toMatchObject({
      name: "SetupError",
      cause: { message: "no such file" },
    });
  });

  it("rejects its start immediately when stopped meanwhile, and starts no more", async () => {
    const { dispatch, workers, clock } = newStage();
    const started = dispatch.start();
    workers.started[0]?.comeUp();
    const stopped = dispatch.stop();
    for (const worker of workers.started) worker.finish();
    await expect(started).rejects.toMatchObject({ cause: { message: "stopped before" } });
    await stopped;
    expect([clock.pending, workers.started.length]).toEqual([0, 2]);
  });

  it("answers everything pending before it stops, then rejects", async () => {
    const { accept, responses, workers, dispatch, clock } = await startedStage();
    for (let id = 1; id <= 5; id += 1) accept(newPacket(id));
    const stopped = dispatch.stop();
    accept(newPacket(6));
    expect(responses.at(-1)).toMatchObject({ id: 6, errorCode: DECODE_ERROR.ring_full });
    expect(workers.started.every((worker) => worker.toldToStop)).toBe(true);
    for (const worker of workers.started) worker.finish();
    await stopped;
    expect(ids(responses).sort()).toEqual([1, 2, 3, 4, 5, 6]);
    expect(responses.filter((response) => response.kind === "accepted")).toHaveLength(5);
    expect(clock.pending).toBe(0);
    expect(await dispatch.stop()).toBe(undefined);
  });

  it("times out a worker that does not finish", async () => {
    const { accept, responses, dispatch, clock } = await startedStage({ inline: "never" });
    for (let id = 1; id <= 3; id += 1) accept(newPacket(id));
    const stopped = dispatch.stop();
    clock.advance(WORKERS_STOP_MS_MAX);
    await stopped;
    expect(responses.map((response) => response.errorCode)).toEqual(died(3));
    expect(dispatch.counters).toMatchObject({ lost: 3, deaths: 0 });
  });

  it("stops while a worker is waiting for its restart", async () => {
    const { clock, workers, dispatch } = await startedStage({ workers: 1 });
    workers.started[0]?.die();
    await until(() => dispatch.counters.deaths === 1);
    await dispatch.stop();
    clock.advance(60_000);
    expect(workers.started).toHaveLength(1);
  });

  it("wakes for the other workers after one died while setting the flag", async () => {
    const { accept, responses, clock, workers, dispatch } = await startedStage({ inline: "never" });
    for (const id of [1, 2]) accept(newPacket(id));
    workers.started[0]?.dieRinging();
    await until(() => dispatch.counters.deaths === 1);
    workers.started[1]?.work();
    await until(() => responses.length === 2);
    clock.advance(100);
    workers.started[2]?.comeUp();
    await until(() => dispatch.workersUp === 2);
  });

  it("handles a worker that responds while other results are being processed", async () => {
    const { dispatch, workers } = await startedStage({ inline: "never" });
    const answeredIds: number[] = [];
    for (const id of [1, 2, 3, 4]) {
      dispatch.accept(newPacket(id), (packet) => {
        answeredIds.push(packet.id);
        // The first worker was drained in this round, and sets the flag again now.
        if (packet.id === 2) workers.started[0]?.work();
      });
    }
    workers.started[1]?.work();
    await until(() => answeredIds.length === 4);
    expect(answeredIds).toEqual([2, 4, 1, 3]);
  });
});
