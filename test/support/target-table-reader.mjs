/**
 * A thread that reads the target table until `end` is set, and reports what it read.
 */

import { parentPort, workerData } from "node:worker_threads";
import { tsImport } from "tsx/esm/api";

const { memory, end } = workerData;
const { TargetTable } = await tsImport("./target-table.ts", import.meta.url);
const isOver = new Int32Array(end);
const table = new TargetTable(memory);
let [torn, changes, given] = [0, 0, 0];
parentPort.postMessage(null);
while (Atomics.load(isOver, 0) === 0) {
  const before = table.count;
  if (!table.refresh()) {
    given += 1;
    continue;
  }
  const { count, ttlMs, bytesMax, peers } = table;
  if (count !== before) changes += 1;
  const isTorn =
    peers.slice(0, count).some((peer) => peer !== count) ||
    bytesMax.slice(0, count).some((size) => size !== 100 * count);
  if (count > 0 && (isTorn || ttlMs !== count)) torn += 1;
}
parentPort.postMessage({ torn, changes, given });
