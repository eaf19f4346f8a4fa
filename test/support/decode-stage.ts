/**
 * The decode stage over fake workers and a fake clock, and a list of its results.
 */

import { DECODE_ERROR } from "../../src/core/decode-errors.ts";
import type { Packet, ValidationResult } from "../../src/core/flow.ts";
import type { Log } from "../../src/core/log.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { createDispatch, type DispatchOptions } from "../../src/decode/workers/dispatch.ts";
import { createFakeClock } from "./fake-clock.ts";
import { createFakeWorkers } from "./fake-workers.ts";
import { DECODER } from "./packets.ts";
import { until as holds } from "./wait.ts";

const SILENT: Log = { info: () => {}, warn: () => {}, error: () => {} };

export interface DecodeResult {
  readonly id: number;
  readonly kind: ValidationResult["kind"];
  readonly errorCode: number | null;
  readonly bytes: Buffer;
}

/** A stage over fake workers, and its results. */
export function newStage(options: Partial<DispatchOptions> = {}) {
  const clock = createFakeClock();
  const workers = createFakeWorkers();
  const deps = { clock, decoder: createDecoder(DECODER), workers, log: SILENT };
  const dispatch = createDispatch(deps, {
    inline: "auto",
    workers: 2,
    decoder: DECODER,
    ringSlots: 4,
    ...options,
  });
  const responses: DecodeResult[] = [];
  const done = (packet: Packet, validation: ValidationResult): void => {
    responses.push({
      id: packet.id,
      kind: validation.kind,
      errorCode: validation.kind === "rejected" ? validation.errorCode : null,
      bytes: Buffer.from(packet.bytes),
    });
  };
  const accept = (packet: Packet): void => dispatch.accept(packet, done);
  return { clock, workers, dispatch, responses, accept, done, log: SILENT };
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

/** The packets' ids in the order of their results. */
export const ids = (responses: readonly DecodeResult[]) => responses.map((response) => response.id);

/** The error of `count` transactions that were pending in a worker that died. */
export const died = (count: number): number[] => new Array(count).fill(DECODE_ERROR.worker_died);
