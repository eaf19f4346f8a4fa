/** The thread of a front. The main thread addresses this file as it is built. */

import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../core/clock.ts";
import { portOf } from "../core/port.ts";
import { loadNative } from "../native/load.ts";
import { startFront } from "./front.ts";
import type { FromThread, FrontTask, ToThread } from "./messages.ts";

const found = loadNative();
if (found.kind !== "loaded") throw new Error(`no native engine in this thread: ${found.kind}`);
if (parentPort === null) throw new Error("this is the entry of a thread");
const port = parentPort;
// What the main thread starts the thread with.
const task = workerData as FrontTask;
startFront(
  {
    clock: systemClock,
    native: found.native,
    port: portOf<FromThread, ToThread>(port),
    onStopped: () => port.close(),
  },
  task,
);
