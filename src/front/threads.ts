/**
 * The threads of fronts, as the main thread starts and ends them. None is ended from outside while
 * it has a connection open, which would abort the process (front.worker.ts): it is told to end, and
 * when the process exits, by whatever way, that waits for it.
 */

import { type TransferListItem, Worker } from "node:worker_threads";
import { builtFile } from "../core/built-file.ts";
import { NS_PER_MS, systemClock } from "../core/clock.ts";
import { FRONT_END_MS_MAX, FRONT_YOUNG_MB_MAX } from "../core/front-limits.ts";
import type { Port } from "../core/port.ts";
import type { FromThread, FrontTask, ThreadTask, ToThread } from "./messages.ts";

export interface FrontThread {
  readonly port: Port<ToThread, FromThread>;
  /** Resolves when the thread is gone: with null where it ended by itself, else with why. */
  readonly ended: Promise<unknown>;
  /** Ends it at once. */
  kill(): void;
}

export type StartFrontThread = (task: FrontTask) => FrontThread;

/** A thread that may have connections. */
interface Serving {
  readonly worker: Worker;
  readonly closed: Int32Array<SharedArrayBuffer>;
}

const serving = new Set<Serving>();

export function startFrontThread(
  task: FrontTask,
  entry: string | URL = builtFile(import.meta.dirname, "front.worker.js"),
): FrontThread {
  const transferList: TransferListItem[] = [task.moved];
  const closed = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const workerData: ThreadTask = { ...task, closed };
  const worker = new Worker(entry, {
    workerData,
    transferList,
    resourceLimits: { maxYoungGenerationSizeMb: FRONT_YOUNG_MB_MAX },
  });
  const thread: Serving = { worker, closed: new Int32Array(closed) };
  // It says something before it gets any connection.
  worker.once("message", () => keep(thread));
  const ended = new Promise<unknown>((done) => {
    worker.once("error", done);
    worker.once("exit", (code) => {
      forget(thread);
      done(code === 0 ? null : new Error(`it exited with ${code}`));
    });
  });
  return {
    port: {
      post: (message) => worker.postMessage(message),
      onMessage: (handler) => void worker.on("message", handler),
    },
    ended,
    kill() {
      if (serving.has(thread)) tellToEnd(thread);
      else void worker.terminate();
    },
  };
}

function keep(thread: Serving): void {
  if (serving.size === 0) process.once("exit", endAll);
  serving.add(thread);
}

function forget(thread: Serving): void {
  if (serving.delete(thread) && serving.size === 0) process.off("exit", endAll);
}

function tellToEnd({ worker }: Serving): void {
  const end: ToThread = { kind: "end" };
  worker.postMessage(end);
  systemClock.after(FRONT_END_MS_MAX, () => void worker.terminate());
}

/** The process exits: Node ends the threads next. */
function endAll(): void {
  for (const thread of serving) tellToEnd(thread);
  const endNs = systemClock.nowNs() + FRONT_END_MS_MAX * NS_PER_MS;
  for (const { closed } of serving) {
    Atomics.wait(closed, 0, 0, Math.max(0, (endNs - systemClock.nowNs()) / NS_PER_MS));
  }
}
