/**
 * Wakes the generator a little before each transaction is due. Node's own timers count whole
 * milliseconds; a thread that waits on an address is accurate to about 60 us and costs no CPU in
 * between. At most one wake is on its way at a time.
 *
 * Plain JavaScript, because worker threads are started without the TypeScript loader.
 */

import { parentPort, workerData } from "node:worker_threads";

const { startNs, periodNs, count, earlyNs, flags } = workerData;
const shared = new Int32Array(flags);
/** Never notified: it is only waited on until the time is up. */
const NEVER = 0;
/** 1 while a wake is on its way, 2 to stop. */
const WAKE = 1;

for (let index = 0; index < count; index += 1) {
  const restNs = startNs + index * periodNs - earlyNs - Number(process.hrtime.bigint());
  if (restNs > 0) Atomics.wait(shared, NEVER, 0, restNs / 1e6);
  const before = Atomics.compareExchange(shared, WAKE, 0, 1);
  if (before === 2) break;
  if (before === 0) parentPort?.postMessage(null);
}
