/** A thread that sends through a front's sender, and tells of each what it did. */

import { parentPort, workerData } from "node:worker_threads";

const { built, memory } = workerData;
const { systemClock } = await import(new URL("core/clock.js", built));
const { loadNative } = await import(new URL("native/load.js", built));
const { createFrontSender, newFrontSend } = await import(new URL("send/front-sender.js", built));

const found = loadNative();
if (found.kind !== "loaded") throw new Error("the native engine is not built");
const front = createFrontSender(
  { native: found.native, clock: systemClock, onHeldUp() {} },
  memory,
);

/** Sends transactions of three bytes, `count` of them from `id` on, `pauseMs` apart. */
parentPort.on("message", async ({ id, count, pauseMs }) => {
  for (let index = 0; index < count; index += 1) {
    const bytes = Uint8Array.of((id + index) >> 16, (id + index) >> 8, id + index);
    const sent = newFrontSend();
    const taken = front.send(bytes, sent);
    const sentNs = systemClock.nowNs();
    parentPort.postMessage({ id: id + index, bytes, taken, sent, sentNs });
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
});
parentPort.postMessage(null);
