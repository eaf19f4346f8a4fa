// Charges one cell as often as it is told, from the moment that all threads are there.
import { workerData } from "node:worker_threads";
import { LimitCells } from "../../dist/limits/shared-state.js";

const { memory, words, cell, tries, nowNs, interval, burst, giveBackEvery } = workerData;
const [ARRIVED, BEGIN, THROUGH, GIVEN_BACK, DONE] = [0, 1, 2, 3, 4];
const cells = new LimitCells(memory);
let [through, givenBack] = [0, 0];
Atomics.add(words, ARRIVED, 1);
Atomics.notify(words, ARRIVED);
Atomics.wait(words, BEGIN, 0);
for (let attempt = 1; attempt <= tries; attempt += 1) {
  if (cells.tryCharge(cell, nowNs, interval, burst) > 0) continue;
  through += 1;
  if (giveBackEvery === 0 || through % giveBackEvery !== 0) continue;
  cells.giveBack(cell, interval);
  givenBack += 1;
}
Atomics.add(words, THROUGH, through);
Atomics.add(words, GIVEN_BACK, givenBack);
Atomics.add(words, DONE, 1);
