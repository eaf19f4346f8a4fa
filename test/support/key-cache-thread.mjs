// A thread that accepts one key itself, as long as it is cached, and counts how often.
import { workerData } from "node:worker_threads";
import { tsImport } from "tsx/esm/api";

const source = (path) => tsImport(path, import.meta.url);
const { networksOf } = await source("../../src/accounts/keys/policy.ts");
const { systemClock } = await source("../../src/core/clock.ts");
const { createKeyCacheAccess } = await source("./key-cache-access.ts");
const { memory, words, token, port } = workerData;
const [ADMITTED, REFUSED, UNKNOWN] = [0, 1, 2];
const access = createKeyCacheAccess({
  clock: systemClock,
  memory,
  networksOf,
  port: { post: (message) => port.postMessage(message) },
});
port.on("message", (message) => access.onMessage(message));

function turn() {
  for (let request = 0; request < 20; request += 1) {
    const principal = access.authenticate(token, { remoteAddress: () => "127.0.0.1" });
    if (principal === null) Atomics.add(words, UNKNOWN, 1);
    else if (access.charge(principal, systemClock.nowNs()) > 0) Atomics.add(words, REFUSED, 1);
    else Atomics.add(words, ADMITTED, 1);
  }
  setImmediate(turn);
}
turn();
