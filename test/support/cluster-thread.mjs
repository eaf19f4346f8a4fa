// A cluster thread that reads no node: it does what the option `rpcUrl` names.

import { parentPort, resourceLimits, workerData } from "node:worker_threads";

const { options, control } = workerData;
const acts = {
  /** Answers nothing, not even a stop. */
  silent: () => undefined,
  /** Ends when it receives a status request. */
  dies: ({ kind }) => {
    if (kind === "statuses") throw new Error("the thread threw");
    if (kind === "stop") parentPort.close();
  },
  /** Does not return from a status request, as with an endless response. */
  busy: ({ kind }) => {
    if (kind === "statuses") for (;;) Atomics.wait(new Int32Array(control.slice(0)), 0, 0, 50);
  },
  /** Sends back what it receives, as the text of a log entry. */
  echo: (message) => {
    if (message.kind === "stop") parentPort.close();
    else parentPort.postMessage({ kind: "log", level: "info", fields: message, message: "echo" });
  },
  /** Answers a message with what it knows of this process. */
  reports: ({ kind }) => {
    const [read, busy] = new Int32Array(control);
    const fields = { read, busy, heapMb: resourceLimits.maxOldGenerationSizeMb };
    if (kind === "stop") parentPort.close();
    else parentPort.postMessage({ kind: "log", level: "info", fields, message: "report" });
  },
};
const [what, ...messages] = options.rpcUrl.split(" ");
if (what === "throws") throw new Error("it does not start");
parentPort.on("message", acts[what]);
parentPort.postMessage({ kind: "started" });
const { knownHeight = null } = options;
if (knownHeight !== null) {
  parentPort.postMessage({ kind: "log", level: "info", fields: knownHeight, message: "known" });
}
for (const text of messages) parentPort.postMessage(JSON.parse(text, typedArrays));

/** Landings are typed arrays, which JSON does not have. */
function typedArrays(key, value) {
  if (key === "signatures") return Uint8Array.from(value);
  return key === "slots" || key === "banks" ? Float64Array.from(value) : value;
}
