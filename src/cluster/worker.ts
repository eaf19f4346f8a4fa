/**
 * The cluster thread: reads the nodes of the cluster, parsing included, so that no response,
 * however long, holds up the thread that serves clients. The main thread loads this file by the
 * name of its build output; `cluster-thread.ts` is its other end.
 *
 * Decision: docs/decisions/0049-cluster-thread.md
 */

import { parentPort, workerData } from "node:worker_threads";
import { nameThread } from "../runtime/thread-name.ts";
import { lowerPriority } from "../runtime/thread-priority.ts";
import { BEGUN, type ClusterTask } from "./thread/messages.ts";
import { serveCluster } from "./thread/serve.ts";

nameThread("td-cluster");
lowerPriority();
if (parentPort === null) throw new Error("this file is a worker thread's");
// What `createClusterWorker` gave.
const task = workerData as ClusterTask;
Atomics.wait(new Int32Array(task.control), BEGUN, 0);
await serveCluster(parentPort, task);
