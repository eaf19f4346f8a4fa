/**
 * Wakes the generator a little before each transaction is due. Node's own timers count whole
 * milliseconds; a thread that waits on an address is accurate to about 60 us and uses no CPU in
 * between. At most one wake-up is pending at a time.
 *
 * Plain JavaScript, because worker threads are started without the TypeScript loader.
 */

import { parentPort, workerData } from "node:worker_threads";

const { startNs, periodNs, count, earlyNs, flags } = workerData;
const shared = new Int32Array(flags);
/** Never notified: waiting on it always ends by timeout. */
const NEVER = 0;
/** 1 while a wake-up is pending, 2 to stop. */
const WAKE = 1;

for (let index = 0; index < count; index += 1) {
  const restNs = startNs + index * periodNs - earlyNs - Number(process.hrtime.bigint());
  if (restNs > 0) Atomics.wait(shared, NEVER, 0, restNs / 1e6);
  const before = Atomics.compareExchange(shared, WAKE, 0, 1);
  if (before === 2) break;
  if (before === 0) parentPort?.postMessage(null);
}
