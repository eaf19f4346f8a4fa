/**
 * Creates the cluster thread. It loads its modules at once and then waits, so that it can be
 * created before its other end, `cluster-thread.ts`, exists: at the start of an edge both threads
 * load at the same time. Until `begin` it sends nothing.
 */

import { Worker } from "node:worker_threads";
import { countersMemory } from "../runtime/shared-counters.ts";
import { compiledPath } from "../runtime/worker-entry.ts";
import { CLUSTER_COUNTERS } from "./counters.ts";
import { THREAD_HEAP_MB_MAX } from "./limits.ts";
import {
  BEGUN,
  type ClusterTask,
  type ClusterThreadOptions,
  CONTROL_WORDS,
} from "./thread/messages.ts";

export interface ClusterWorker {
  readonly worker: Worker;
  /** `CONTROL_WORDS` words that the main thread writes. */
  readonly control: Int32Array;
  /** The numbers of `CLUSTER_COUNTERS`. */
  readonly counters: SharedArrayBuffer;
  /** Resolves with the cause when the thread has ended. */
  readonly ended: Promise<unknown>;
  /** Has it read the nodes from now on. */
  begin(): void;
}

/** `counters` are those of the thread that it replaces; `entry` is by default the built file. */
export function createClusterWorker(
  options: ClusterThreadOptions,
  counters = countersMemory(CLUSTER_COUNTERS.length),
  entry = compiledPath(import.meta.dirname, "./worker.js"),
): ClusterWorker {
  const shared = new SharedArrayBuffer(4 * CONTROL_WORDS);
  const control = new Int32Array(shared);
  const task: ClusterTask = { options, counters, control: shared };
  const worker = new Worker(entry, {
    name: "cluster",
    workerData: task,
    resourceLimits: { maxOldGenerationSizeMb: THREAD_HEAP_MB_MAX },
  });
  let cause: unknown = new Error("the thread ended by itself");
  worker.once("error", (error) => {
    cause = error;
  });
  const ended = new Promise<unknown>((resolve) => {
    worker.once("exit", () => resolve(cause));
  });
  return {
    worker,
    control,
    counters,
    ended,
    begin() {
      Atomics.store(control, BEGUN, 1);
      Atomics.notify(control, BEGUN);
    },
  };
}
