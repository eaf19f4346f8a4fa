// Hot path: the transaction is decoded in place in shared memory.
/**
 * A worker thread: reads transactions from its request ring, decodes them, and writes the
 * validation results into its reply ring, until the stop flag is set. It ends only when all
 * requests are answered.
 *
 * It blocks the thread while it is idle, so the thread has no event loop: no timer fires here, and
 * no message is delivered. The main thread loads this file by the name of its build output.
 *
 * Decision: docs/decisions/0019-workers-validate-one-thread-sends.md
 */

import { DECODE_ERROR } from "../../core/decode-errors.ts";
import type { Rejected } from "../../core/flow.ts";
import { nameThread } from "../../runtime/thread-name.ts";
import { wake } from "../../runtime/wake-flag.ts";
import { createDecoder, type Decoder, type DecoderOptions } from "../decoder.ts";
import {
  ASLEEP,
  type Channel,
  openChannel,
  READY,
  REQUEST_HEAD_BYTES,
  STOP,
  writeValidation,
} from "./worker-channel.ts";

/** The arguments of a worker thread. */
export interface WorkerTask {
  /** The word that wakes the main thread; shared by all workers. */
  readonly wakeFlag: SharedArrayBuffer;
  /** This worker's channel, and the slots of its rings. */
  readonly channel: SharedArrayBuffer;
  readonly slots: number;
  readonly decoder: DecoderOptions;
}

/** Serves one channel until the stop flag is set. */
export function serve(task: WorkerTask): void {
  nameThread("td-decode");
  const wakeFlag = new Int32Array(task.wakeFlag);
  const channel = openChannel(task.channel, task.slots);
  const decoder = createDecoder(task.decoder);
  Atomics.store(channel.int32, READY, 1);
  wake(wakeFlag, 0);
  for (;;) {
    drain(channel, decoder, wakeFlag);
    if (Atomics.load(channel.int32, STOP) === 1 && channel.requests.depth === 0) return;
    Atomics.store(channel.int32, ASLEEP, 1);
    const rest = channel.requests.depth > 0 || Atomics.load(channel.int32, STOP) === 1;
    if (rest) Atomics.store(channel.int32, ASLEEP, 0);
    else Atomics.wait(channel.int32, ASLEEP, 1);
  }
}

function drain(channel: Channel, decoder: Decoder, wakeFlag: Int32Array<SharedArrayBuffer>): void {
  const { requests, replies, bytes, numbers } = channel;
  for (let request = requests.peek(); request !== -1; request = requests.peek()) {
    const start = request + REQUEST_HEAD_BYTES;
    const size = numbers[request / 8] ?? 0;
    // The main thread never has more pending than the reply ring has slots, so one is free.
    const reply = replies.claim();
    try {
      writeValidation(numbers, reply, decoder.decode(bytes.subarray(start, start + size)));
    } catch {
      // The decoder must not throw. If it does, this transaction is rejected, and the thread stays
      // alive for the others.
      writeValidation(numbers, reply, FAILED);
    }
    requests.release();
    publishCounters(channel, decoder);
    replies.publish();
    wake(wakeFlag, 0);
  }
}

const FAILED: Rejected = {
  kind: "rejected",
  errorCode: DECODE_ERROR.worker_died,
  found: 0,
  needed: 0,
};

function publishCounters({ counters: shared }: Channel, { counters }: Decoder): void {
  shared[0] = counters.verified;
  shared[1] = counters.invalid;
  shared[2] = counters.keysFound;
  shared[3] = counters.keysMade;
  shared[4] = counters.keysEvicted;
}
