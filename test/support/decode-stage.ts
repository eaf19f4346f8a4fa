/** The decode stage over fake workers and a fake clock, and a list of what it answered. */

import { FAULT } from "../../src/core/faults.ts";
import type { Packet, Verdict } from "../../src/core/flow.ts";
import type { Log } from "../../src/core/log.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { createDispatch, type DispatchOptions } from "../../src/decode/workers/dispatch.ts";
import { createFakeClock } from "./fake-clock.ts";
import { createFakeWorkers } from "./fake-workers.ts";
import { DECODER } from "./packets.ts";
import { until as holds } from "./wait.ts";

const SILENT: Log = { info: () => {}, warn: () => {}, error: () => {} };

export interface Answer {
  readonly id: number;
  readonly kind: Verdict["kind"];
  readonly fault: number | null;
  readonly bytes: Buffer;
}

/** A stage over fake workers, and what it answered. */
export function newStage(options: Partial<DispatchOptions> = {}) {
  const clock = createFakeClock();
  const workers = createFakeWorkers();
  const real = createDecoder(DECODER);
  /** How long each decoding takes on the calling thread. */
  const decoding = { us: 0 };
  const decoder = {
    decode(bytes: Uint8Array): Verdict {
      clock.advance(decoding.us / 1_000);
      return real.decode(bytes);
    },
  };
  const deps = { clock, decoder, workers, log: SILENT };
  const dispatch = createDispatch(deps, {
    inline: "auto",
    workers: 2,
    decoder: DECODER,
    ringSlots: 4,
    ...options,
  });
  const answers: Answer[] = [];
  const done = (packet: Packet, verdict: Verdict): void => {
    answers.push({
      id: packet.id,
      kind: verdict.kind,
      fault: verdict.kind === "refused" ? verdict.fault : null,
      bytes: Buffer.from(packet.bytes),
    });
  };
  const accept = (packet: Packet): void => dispatch.accept(packet, done);
  return { clock, workers, dispatch, answers, accept, done, decoding, log: SILENT };
}

/** A stage whose workers are up. */
export async function startedStage(options: Partial<DispatchOptions> = {}) {
  const stage = newStage(options);
  const started = stage.dispatch.start();
  for (const worker of stage.workers.started) worker.comeUp();
  await started;
  return stage;
}

/** Resolves when the condition holds. */
export const until = (condition: () => boolean) => holds("what the stage is to do", condition);

export const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The packets' ids in the order of their answers. */
export const ids = (answers: readonly Answer[]) => answers.map((answer) => answer.id);

/** The fault of `count` transactions that a worker took to its grave. */
export const died = (count: number): number[] => new Array(count).fill(FAULT.worker_died);
