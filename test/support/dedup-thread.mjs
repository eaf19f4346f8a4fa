// Reserves the same transactions as other threads, simultaneously, and reports which it got.
import { parentPort, workerData } from "node:worker_threads";
import { openDedupCache } from "../../dist/dedup/recent-transactions.js";

const { memory, options, startFlag, transactions } = workerData;
const dedup = openDedupCache(memory, options);
const word = new Int32Array(startFlag);
Atomics.add(word, 1, 1);
Atomics.wait(word, 0, 0);
const got = transactions.map((bytes) => dedup.reserve(bytes, 1, 0) === "new");
parentPort.postMessage(got);
