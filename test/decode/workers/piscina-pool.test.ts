import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { DECODE_ERROR } from "../../../src/core/decode-errors.ts";
import type { Packet, ValidationResult } from "../../../src/core/flow.ts";
import type { Log } from "../../../src/core/log.ts";
import { createDecoder } from "../../../src/decode/decoder.ts";
import { createDispatch, type DispatchOptions } from "../../../src/decode/workers/dispatch.ts";
import { createWorkerPool } from "../../../src/decode/workers/piscina-pool.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { DECODER, newPacket, packetOf } from "../../support/packets.ts";
import { until } from "../../support/wait.ts";

const SILENT: Log = { info: () => {}, warn: () => {}, error: () => {} };
const support = (name: string): string =>
  fileURLToPath(new URL(`../../support/${name}`, import.meta.url));

/** The stage on real threads, with one promise for each packet's validation result. */
function newStage(options: Partial<DispatchOptions> & { entry?: string; clock?: Clock } = {}) {
  const threads = options.workers ?? 2;
  const pool = createWorkerPool(options.entry);
  const dispatch = createDispatch(
    {
      clock: options.clock ?? systemClock,
      decoder: createDecoder(DECODER),
      workers: pool,
      log: SILENT,
    },
    { inline: "never", workers: threads, decoder: DECODER, ringSlots: 64, ...options },
  );
  const answered = new Map<number, number>();
  const accept = (packet: Packet): Promise<ValidationResult> =>
    new Promise((resolve) => {
      dispatch.accept(packet, ({ id }, validation) => {
        answered.set(id, (answered.get(id) ?? 0) + 1);
        resolve(validation);
      });
    });
  return { pool, dispatch, accept, answered };
}

const errorCodeOf = (validation: ValidationResult): number | null =>
  validation.kind === "rejected" ? validation.errorCode : null;

describe("worker threads", () => {
  it("return one validation result for each of many transactions", async () => {
    const { dispatch, accept, answered } = newStage({ inline: "auto", ringSlots: 16 });
    await dispatch.start();
    const good = Array.from({ length: 8 }, (_, i) => newPacket(i).bytes);
    const decoder = createDecoder(DECODER);
    let id = 0;
    for (let burst = 0; burst < 60; burst += 1) {
      const validations = Array.from({ length: burst % 25 }, (_, i) => {
        const bytes = (good[(burst + i) % good.length] ?? new Uint8Array(0)).slice();
        // Every third is corrupted, each at another offset.
        if (i % 3 === 0) bytes.set([burst], (burst * 7 + i) % bytes.length);
        id += 1;
        const expected = decoder.decode(bytes);
        return accept({ ...newPacket(1), id, bytes }).then((validation) => [validation, expected]);
      });
      for (const [validation, expected] of await Promise.all(validations)) {
        expect(validation).toEqual(expected);
      }
    }
    expect([...answered.values()].every((times) => times === 1)).toBe(true);
    expect(answered.size).toBe(id);
    expect(dispatch.counters.handed).toBeGreaterThan(0);
    expect(dispatch.counters.inline).toBeGreaterThan(0);
    expect(dispatch.counters).toMatchObject({ full: 0, lost: 0, deaths: 0 });
    expect(dispatch.verifierCounters.verified).toBeGreaterThan(0);
    await dispatch.stop();
  });

  it("answer pending transactions when they are stopped, and end", async () => {
    const { dispatch, accept, pool } = newStage();
    await dispatch.start();
    const validations = Array.from({ length: 100 }, (_, id) => accept(newPacket(id)));
    expect(pool.threads).toHaveLength(2);
    await dispatch.stop();
    for (const validation of await Promise.all(validations))
      expect(validation.kind).toBe("accepted");
    expect(pool.threads).toHaveLength(0);
  });

  it("are replaced when they are terminated during a batch", async () => {
    // Enough to keep the worker busy for a second.
    const count = 8192;
    const { dispatch, accept, pool, answered } = newStage({ workers: 1, ringSlots: count });
    const { bytes } = newPacket(1);
    await dispatch.start();
    const validations = Array.from({ length: count }, (_, id) => accept(packetOf(id, bytes)));
    await validations[0];
    await pool.threads[0]?.terminate();
    const errorCodes = (await Promise.all(validations)).map(errorCodeOf);
    const cut = errorCodes.indexOf(DECODE_ERROR.worker_died);
    expect(cut).toBeGreaterThan(0);
    expect(errorCodes.slice(0, cut).every((errorCode) => errorCode === null)).toBe(true);
    expect(errorCodes.slice(cut).every((errorCode) => errorCode === DECODE_ERROR.worker_died)).toBe(
      true,
    );
    await until("the worker is up again", () => dispatch.workersUp === 1);
    expect((await accept(newPacket(count))).kind).toBe("accepted");
    expect(dispatch.counters).toMatchObject({ deaths: 1, lost: count - cut });
    expect([...answered.values()].every((times) => times === 1)).toBe(true);
    await dispatch.stop();
  });

  for (const entry of ["worker-exits.mjs", "worker-throws.mjs"]) {
    it(`leave no caller waiting when their code throws: ${entry}`, async () => {
      const { dispatch, accept } = newStage({ entry: support(entry), clock: createFakeClock() });
      await dispatch.start();
      const validations = Array.from({ length: 10 }, (_, id) => accept(newPacket(id)));
      for (const validation of await Promise.all(validations)) {
        expect(errorCodeOf(validation)).toBe(DECODE_ERROR.worker_died);
      }
      expect(dispatch.counters).toMatchObject({ deaths: 2, lost: 10 });
      expect(errorCodeOf(await accept(newPacket(11)))).toBe(DECODE_ERROR.ring_full);
      await dispatch.stop();
    });
  }

  it("fail the start when they die before they accepted their task", async () => {
    const { dispatch, pool } = newStage({ workers: 1 });
    const started = dispatch.start();
    const [thread] = pool.threads;
    const [failure] = await Promise.allSettled([started, thread?.terminate()]);
    expect(failure).toMatchObject({ status: "rejected", reason: { name: "SetupError" } });
    expect(pool.threads).toHaveLength(0);
  });

  it("fail the start when they cannot be loaded", async () => {
    for (const entry of ["worker-broken.mjs", "no-such-worker.mjs"]) {
      const { dispatch, pool } = newStage({ entry: support(entry) });
      await expect(dispatch.start()).rejects.toThrow("could not be started");
      expect(pool.threads).toHaveLength(0);
    }
  });

  it("let the process exit once they are stopped, and not while they work", async () => {
    const child = spawn(process.execPath, [support("dispatch-exit.mjs")], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    child.stdout.on("data", (chunk) => {
      text += chunk;
    });
    const [code] = await once(child, "close");
    expect([code, text]).toEqual([0, "rejected rejected stopped\n"]);
  });
});
