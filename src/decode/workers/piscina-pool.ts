/**
 * The threads: each runs one endless task, and piscina manages its lifetime.
 *
 * Transactions never pass through piscina (a task by message costs 76 to 100 us); it starts
 * threads, reports when one has died, and ends them. Each thread has its own piscina with a
 * capacity of one: a shared one would lose a task whose thread dies before it accepted the task,
 * and would choose itself when to start the next thread.
 */

import type { Worker } from "node:worker_threads";
import { Piscina } from "piscina";
import { compiledPath } from "../../runtime/worker-entry.ts";
import { WORKER_HEAP_MB_MAX, WORKER_YOUNG_MB_MAX } from "../limits.ts";
import type { WorkerTask } from "./decode.worker.ts";

export interface WorkerPool {
  /**
   * Runs the task on a dedicated thread. Resolves when the task returned, rejects when its thread
   * died or could not start. Keeps the process alive until then.
   */
  run(task: WorkerTask): Promise<void>;
  /** The threads that are alive now. */
  readonly threads: readonly Worker[];
  /** Ends every thread immediately; running tasks reject. */
  close(): Promise<void>;
}

/**
 * An empty pool. `entry` is the module whose `serve` is the task; by default the built
 * decode.worker.js.
 */
export function createWorkerPool(
  entry = compiledPath(import.meta.dirname, "./decode.worker.js"),
): WorkerPool {
  const running = new Set<Piscina>();
  return {
    async run(task) {
      const thread = newThread();
      running.add(thread);
      try {
        // Passed here and not in newThread, so that a module that fails to load fails the task.
        const finished: Promise<void> = thread.run(task, { filename: entry, name: "serve" });
        await Promise.race([finished, death(thread)]);
      } finally {
        running.delete(thread);
        await thread.destroy();
      }
    },
    get threads() {
      return [...running].flatMap((thread) => thread.threads);
    },
    async close() {
      await Promise.all([...running].map((thread) => thread.destroy()));
    },
  };
}

function newThread(): Piscina {
  return new Piscina({
    minThreads: 0,
    maxThreads: 1,
    recordTiming: false,
    resourceLimits: {
      maxOldGenerationSizeMb: WORKER_HEAP_MB_MAX,
      maxYoungGenerationSizeMb: WORKER_YOUNG_MB_MAX,
    },
  });
}

/** Rejects when the thread has ended, one turn later, so that a more specific error comes first. */
function death(thread: Piscina): Promise<never> {
  return new Promise((_, reject) => {
    thread.on("error", reject);
    thread.on("workerDestroy", () => {
      setImmediate(() => reject(new Error("the worker thread ended")));
    });
  });
}
