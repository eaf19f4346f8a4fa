/**
 * A decode worker that also sends: it measures whether workers should. It serves the same channel
 * as `src/decode/workers/decode.worker.ts`, and sends valid transactions to the one leader before
 * it returns the validation result; the main thread only responds. Plain JavaScript on the built
 * files, because a thread of Node 20 cannot load TypeScript.
 */

import {
  ASLEEP,
  openChannel,
  READY,
  REQUEST_HEAD_BYTES,
} from "../../dist/decode/workers/worker-channel.js";
import { VALIDATION_NUMBERS } from "../../dist/native/contract.js";
import { loadNative } from "../../dist/native/load.js";
import { wake } from "../../dist/runtime/wake-flag.js";

const TTL_MS = 800;

/** Serves one channel until the process ends. */
export function serve({ wakeFlag: wakeFlagMemory, channel: memory, slots, decoder, engine, peer }) {
  const { native } = loadNative();
  const wakeFlag = new Int32Array(wakeFlagMemory);
  const channel = openChannel(memory, slots);
  const { requests, replies, bytes, numbers, words } = channel;
  const copies = Uint32Array.of(peer, 0);
  // The engine does not write to memory from which it reads a transaction.
  const validation = new Float64Array(VALIDATION_NUMBERS);
  let tx = 0;
  Atomics.store(words, READY, 1);
  wake(wakeFlag, 0);
  for (;;) {
    for (let request = requests.peek(); request !== -1; request = requests.peek()) {
      const start = request + REQUEST_HEAD_BYTES;
      const transaction = bytes.subarray(start, start + (numbers[request / 8] ?? 0));
      const reply = replies.claim();
      if (native.decode(decoder.nativeHandle, transaction, validation, 0) === 1) {
        tx += 1;
        native.txSend(engine, copies, transaction, tx, TTL_MS);
      }
      numbers.set(validation, reply / 8);
      requests.release();
      replies.publish();
      wake(wakeFlag, 0);
    }
    Atomics.store(words, ASLEEP, 1);
    if (requests.depth > 0) Atomics.store(words, ASLEEP, 0);
    else Atomics.wait(words, ASLEEP, 1);
  }
}
