/**
 * The threads themselves: each runs one endless task, and piscina owns its life.
 *
 * Transactions never pass through piscina (a task by message costs 76 to 100 us); it starts
 * threads, tells when one has died, and ends them. Each thread has a piscina of its own with room
 * for one: a shared one would forget a task whose thread dies before it took the task up, and
 * would start the next thread when it likes.
 */

import type { Worker } from "node:worker_threads";
import { Piscina } from "piscina";
import { compiledPath } from "../../runtime/worker-entry.ts";
import { WORKER_HEAP_MB_MAX, WORKER_YOUNG_MB_MAX } from "../limits.ts";
import type { WorkerTask } from "./decode.worker.ts";

export interface WorkerPool {
  /**
   * Runs the task on a thread of its own. Resolves when the task returned, rejects when its
   * thread died or could not start. Keeps the process alive until then.
   */
  run(task: WorkerTask): Promise<void>;
  /** The threads that live now. */
  readonly threads: readonly Worker[];
  /** Ends every thread at once; what still ran rejects. */
  close(): Promise<void>;
}

/**
 * A pool without threads as yet. `entry` is the module whose `serve` is the task; when not given,
 * the built decode.worker.js.
 */
export function createWorkerPool(
  entry = compiledPath(import.meta.dirname, "decode.worker.js"),
): WorkerPool {
  const running = new Set<Piscina>();
  return {
    async run(task) {
      const thread = newThread();
      running.add(thread);
      try {
        // Named here and not in newThread, so that a module that does not load fails the task.
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

/** Rejects when the thread is gone, one turn later, so that a more telling error comes first. */
function death(thread: Piscina): Promise<never> {
  return new Promise((_, reject) => {
    thread.on("error", reject);
    thread.on("workerDestroy", () => {
      setImmediate(() => reject(new Error("the worker thread ended")));
    });
  });
}
