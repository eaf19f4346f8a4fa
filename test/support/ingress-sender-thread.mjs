/**
 * A thread that sends as an ingress thread does, and reports each send.
 */

import { parentPort, workerData } from "node:worker_threads";
import { tsImport } from "tsx/esm/api";

const source = (path) => tsImport(path, import.meta.url);
const { systemClock } = await source("../../src/core/clock.ts");
const { loadNative } = await source("../../src/native/load.ts");
const { newSendRecord } = await source("../../src/send/native/send-record.ts");
const { createIngressSender } = await source("./ingress-sender.ts");

const found = loadNative();
if (found.kind !== "loaded") throw new Error("the native engine is not built");
const front = createIngressSender(found.native, workerData.memory);

/** Sends transactions of three bytes, `count` of them from `id` on, `pauseMs` apart. */
parentPort.on("message", async ({ id, count, pauseMs }) => {
  for (let index = 0; index < count; index += 1) {
    const bytes = Uint8Array.of((id + index) >> 16, (id + index) >> 8, id + index);
    const sent = newSendRecord();
    const taken = front.send(bytes, sent);
    const sentNs = systemClock.nowNs();
    parentPort.postMessage({ id: id + index, bytes, taken, sent, sentNs });
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
});
parentPort.postMessage(null);
