// Charges one shared limit a given number of times, starting when all threads are ready.
import { workerData } from "node:worker_threads";
import { GlobalLimitStates } from "../../dist/limits/global-state.js";

const { memory, words, limitSlot, nowNs, plan } = workerData;
const [ARRIVED, START, THROUGH, ROUNDS, DONE] = [0, 1, 2, 3, 4];
const limitStates = new GlobalLimitStates(memory);
Atomics.add(words, ARRIVED, 1);
Atomics.notify(words, ARRIVED);
Atomics.wait(words, START, 0);
while (Atomics.load(words, DONE) === 0) {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    if (limitStates.tryCharge(limitSlot, nowNs, plan) === 0) Atomics.add(words, THROUGH, 1);
  }
  Atomics.add(words, ROUNDS, 1);
}
