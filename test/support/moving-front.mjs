/**
 * A front on a thread of its own, from the built files. It lets in one key by itself and moves
 * anything else; tells its descriptor, and its counters once it has stopped.
 */

import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../dist/core/clock.js";
import { portOf } from "../../dist/core/port.js";
import { createElsewhere } from "../../dist/ingress/elsewhere.js";
import { createFrontServer } from "../../dist/ingress/http.js";

const { port, key } = workerData;
const plan = { name: "P", ratePerSecond: 1, burst: 1, shared: false };
const owner = { keyId: "k", account: "a", plan, restriction: null };
const elsewhere = createElsewhere(portOf(port));
const server = createFrontServer(
  {
    clock: systemClock,
    gate: { find: (token) => (token === key ? owner : null), charge: () => 0 },
    submit: ({ bytes }) => ({ kind: "accepted", signature: `of ${bytes.length} bytes` }),
    calls: { read: () => null },
    log: { info() {}, warn() {}, error() {} },
    latency: null,
    elsewhere,
  },
  { requestDeadlineMs: 600_000, connectionsMax: 1_000 },
);
parentPort.postMessage(server.descriptor);
parentPort.once("message", async () => {
  await server.stop();
  parentPort.postMessage({ ...server.counters, moved: elsewhere.counters.moved });
  port.close();
});
