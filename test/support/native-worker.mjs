/**
 * A thread that uses another thread's decoder; reports how many were accepted.
 */

import { createRequire } from "node:module";
import { parentPort, workerData } from "node:worker_threads";

const { addon, handle, files, rounds } = workerData;
const native = createRequire(import.meta.url)(addon);
const out = new Float64Array(11);
let accepted = 0;
for (let round = 0; round < rounds; round += 1) {
  for (const bytes of files) accepted += native.decode(handle, bytes, out, 0);
}
parentPort.postMessage(accepted);
