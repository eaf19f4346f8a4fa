// Starts the decode stage with nothing else to keep the process alive, and stops it after two
// results. The test checks that this ends, and only after it has printed.
import { systemClock } from "../../dist/core/clock.js";
import { createDecoder } from "../../dist/decode/decoder.js";
import { createDispatch } from "../../dist/decode/workers/dispatch.js";
import { createWorkerPool } from "../../dist/decode/workers/piscina-pool.js";

const silent = { info() {}, warn() {}, error() {} };
const decoder = {
  tipAccounts: [new Uint8Array(32).fill(1)],
  lamportsMin: 1,
  verify: true,
  keyCacheSize: 4,
};
const dispatch = createDispatch(
  {
    clock: systemClock,
    decoder: createDecoder(decoder),
    workers: createWorkerPool(),
    log: silent,
  },
  { inline: "never", workers: 2, decoder },
);
await dispatch.start();
let left = 2;
const done = (_, validation) => {
  process.stdout.write(`${validation.kind} `);
  left -= 1;
  if (left === 0) dispatch.stop().then(() => process.stdout.write("stopped\n"));
};
for (let id = 1; id <= 2; id += 1) {
  dispatch.accept(
    { id, bytes: new Uint8Array(9), account: "a", receivedNs: 0, maxRetries: null },
    done,
  );
}
