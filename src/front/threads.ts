/** The threads of fronts, as the main thread starts and ends them. */

import { type TransferListItem, Worker } from "node:worker_threads";
import { builtFile } from "../core/built-file.ts";
import { FRONT_YOUNG_MB_MAX } from "../core/front-limits.ts";
import type { Port } from "../core/port.ts";
import type { FromThread, FrontTask, ToThread } from "./messages.ts";

export interface FrontThread {
  readonly port: Port<ToThread, FromThread>;
  /** Resolves when the thread is gone: with null where it ended by itself, else with why. */
  readonly ended: Promise<unknown>;
  /** Ends it at once. */
  kill(): void;
}

export type StartFrontThread = (task: FrontTask) => FrontThread;

export function startFrontThread(
  task: FrontTask,
  entry: string | URL = builtFile(import.meta.dirname, "front.worker.js"),
): FrontThread {
  const transferList: TransferListItem[] = [task.moved];
  const worker = new Worker(entry, {
    workerData: task,
    transferList,
    resourceLimits: { maxYoungGenerationSizeMb: FRONT_YOUNG_MB_MAX },
  });
  const ended = new Promise<unknown>((done) => {
    worker.once("error", done);
    worker.once("exit", (code) => done(code === 0 ? null : new Error(`it exited with ${code}`)));
  });
  return {
    port: {
      post: (message) => worker.postMessage(message),
      onMessage: (handler) => void worker.on("message", handler),
    },
    ended,
    kill: () => void worker.terminate(),
  };
}
