/**
 * The thread of a front. The main thread addresses this file as it is built.
 *
 * The surprise: a thread that ends with a connection open takes the process with it by an abort,
 * because Node asserts that nothing of the thread's event loop is in use any more; and so does a
 * connection that is handed to it once none of its code runs. So a thread that fails closes its
 * connections, says so and stays, and ends when it is told to, after which it is handed none. One
 * whose heap is full cannot: Node ends it at once, and aborts before it tells anybody of why.
 */

import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../core/clock.ts";
import { portOf } from "../core/port.ts";
import { OK } from "../native/contract.ts";
import { loadNative } from "../native/load.ts";
import { startFront } from "./front.ts";
import type { FromThread, ThreadTask, ToThread } from "./messages.ts";

const found = loadNative();
if (found.kind !== "loaded") throw new Error(`no native engine in this thread: ${found.kind}`);
if (parentPort === null) throw new Error("this is the entry of a thread");
const line = parentPort;
const port = portOf<FromThread, ToThread>(line);
// What the main thread starts the thread with.
const task = workerData as ThreadTask;
if (task.realtime && found.native.threadGoFirst() !== OK) {
  throw new Error(
    "host.realtime: the system allows it no real-time priority: it takes CAP_SYS_NICE, or a " +
      "limit for it of 1 or more (LimitRTPRIO of systemd, --ulimit rtprio of Docker)",
  );
}

const front = startFront(
  { clock: systemClock, native: found.native, port, onStopped: () => line.close(), onEnd: end },
  task,
);
process.on("uncaughtException", (error) => {
  front.close();
  port.post({ kind: "died", error: error.stack ?? String(error) });
});

function end(): void {
  front.close();
  // In this turn some may still come that were handed on before.
  setImmediate(() => {
    const closed = new Int32Array(task.closed);
    Atomics.store(closed, 0, 1);
    Atomics.notify(closed, 0);
    // Nothing else keeps the thread.
    task.moved.close();
    line.close();
  });
}
