/**
 * A thread that reads the target table until the unused word 60 is set, and reports what it read.
 */

import { parentPort, workerData } from "node:worker_threads";
import { tsImport } from "tsx/esm/api";

const { memory } = workerData;
const { TargetTable } = await tsImport("./target-table.ts", import.meta.url);
const END = 60;
const words = new Uint32Array(memory);
const table = new TargetTable(memory);
let [torn, versions, given] = [0, 0, 0];
parentPort.postMessage(null);
while (Atomics.load(words, END) === 0) {
  const before = table.version;
  if (!table.refresh()) {
    given += 1;
    continue;
  }
  const { version, count, ttlMs, bytesMax, peers } = table;
  if (version !== before) versions += 1;
  const isWhole = count === 0 || (ttlMs === count && bytesMax === 100 * count);
  if (!isWhole || peers.slice(0, count).some((peer) => peer !== count)) torn += 1;
}
parentPort.postMessage({ torn, versions, given });
