// Charges one limit slot a given number of times, starting when all threads are ready.
import { workerData } from "node:worker_threads";
import { ThreadLimitStates } from "../../dist/limits/thread-limit-states.js";

const { memory, words, limitSlot, tries, nowNs, interval, burst, refundEvery } = workerData;
const [ARRIVED, START, THROUGH, REFUNDED, DONE] = [0, 1, 2, 3, 4];
const limitStates = new ThreadLimitStates(memory);
let [through, refunded] = [0, 0];
Atomics.add(words, ARRIVED, 1);
Atomics.notify(words, ARRIVED);
Atomics.wait(words, START, 0);
for (let attempt = 1; attempt <= tries; attempt += 1) {
  if (limitStates.tryCharge(limitSlot, nowNs, interval, burst) > 0) continue;
  through += 1;
  if (refundEvery === 0 || through % refundEvery !== 0) continue;
  limitStates.refund(limitSlot, interval);
  refunded += 1;
}
Atomics.add(words, THROUGH, through);
Atomics.add(words, REFUNDED, refunded);
Atomics.add(words, DONE, 1);
