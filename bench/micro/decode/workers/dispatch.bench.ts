/**
 * Bursts through the stage, from the first accept to the last result, decoded on this thread, by
 * workers, or by both. The workers run the built code: build first.
 *
 * Excluded: sockets and sending. With as many workers as cores the threads wait for each other, so
 * only rows of the same machine are comparable.
 */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { systemClock } from "../../../../src/core/clock.ts";
import type { ValidationResult } from "../../../../src/core/flow.ts";
import { createDecoder } from "../../../../src/decode/decoder.ts";
import { createDispatch, type DispatchOptions } from "../../../../src/decode/workers/dispatch.ts";
import { createWorkerPool } from "../../../../src/decode/workers/piscina-pool.ts";
import { DECODER, newPacket } from "../../../../test/support/packets.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

export async function build(): Promise<Bench> {
  const bench = new Bench({ name: "decode/dispatch", time: 1000, warmupTime: 200 });
  const packets = Array.from({ length: 64 }, (_, id) => newPacket(id));
  for (const size of [1, 8, 64]) {
    for (const [inline, workers] of [
      ["always", 0],
      ["never", 1],
      ["auto", 1],
      ["auto", 2],
    ] as const) {
      addBurst(bench, packets.slice(0, size), inline, workers);
    }
  }
  return bench;
}

function addBurst(
  bench: Bench,
  packets: readonly ReturnType<typeof newPacket>[],
  inline: DispatchOptions["inline"],
  workers: number,
): void {
  const deps = {
    clock: systemClock,
    decoder: createDecoder(DECODER),
    workers: createWorkerPool(),
    log: SILENT,
  };
  const dispatch = createDispatch(deps, { inline, workers, decoder: DECODER });
  let left = 0;
  let finish = (): void => {};
  const done = (_: unknown, validation: ValidationResult): void => {
    assert.equal(validation.kind, "accepted");
    left -= 1;
    if (left === 0) finish();
  };
  const burst = (): Promise<void> =>
    new Promise((resolve) => {
      left = packets.length;
      // A new turn for each burst, as when a socket has become readable.
      finish = () => setImmediate(resolve);
      for (const packet of packets) dispatch.accept(packet, done);
    });
  bench.add(`burst of ${packets.length}, ${inline}, ${workers} workers`, burst, {
    beforeAll: async () => {
      if (dispatch.workersUp < workers) await dispatch.start();
      await burst();
    },
    async afterAll(mode) {
      if (mode === "run") await dispatch.stop();
    },
  });
}
