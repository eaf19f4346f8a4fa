// Fills a ring with 0, 1, 2 … and their negatives, as fast as its reader allows.
import { workerData } from "node:worker_threads";
import { createRing } from "../../dist/runtime/ring.js";

const { buffer, slots, slotBytes, count } = workerData;
const ring = createRing(buffer, 0, slots, slotBytes);
const numbers = new Float64Array(buffer);
const pause = new Int32Array(new SharedArrayBuffer(4));
for (let value = 0; value < count; ) {
  const slot = ring.claim();
  if (slot === -1) {
    Atomics.wait(pause, 0, 0, 0.01);
    continue;
  }
  numbers[slot / 8] = value;
  numbers[slot / 8 + 1] = -value;
  ring.publish();
  value += 1;
}
