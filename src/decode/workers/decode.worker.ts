// Hot path: the transaction is decoded where it lies in shared memory.
/**
 * A worker thread: takes transactions from its request ring, decodes them, and puts the verdicts
 * into its reply ring, until it is told to stop. It ends only when its requests are all answered.
 *
 * It blocks the thread while there is nothing to do, so the thread has no event loop: no timer
 * fires here, and a message cannot reach it. The main thread addresses this file as it is built.
 *
 * Decision: docs/decisions/0019-workers-validate-one-thread-sends.md
 */

import { NS_PER_US, systemClock } from "../../core/clock.ts";
import { DECODE_ERROR } from "../../core/decode-errors.ts";
import type { Rejected } from "../../core/flow.ts";
import { loadNative } from "../../native/load.ts";
import { wake } from "../../runtime/wake-flag.ts";
import { createDecoder, type Decoder, type WorkerDecoder } from "../decoder.ts";
import { nativeDecoder } from "../native-decoder.ts";
import {
  ASLEEP,
  type Channel,
  openChannel,
  READY,
  REQUEST_HEAD_BYTES,
  STOP,
  writeValidation,
} from "./worker-channel.ts";

/** What a worker thread is given when it starts. */
export interface WorkerTask {
  /** The word that wakes the main thread; shared by all workers. */
  readonly wakeFlag: SharedArrayBuffer;
  /** This worker's channel, and the slots of its rings. */
  readonly channel: SharedArrayBuffer;
  readonly slots: number;
  readonly decoder: WorkerDecoder;
  /** How long it looks for more before it sleeps. */
  readonly pollUs: number;
}

/** Serves one channel. Returns when told to stop; that it does not return is its normal state. */
export function serve(task: WorkerTask): void {
  const wakeFlag = new Int32Array(task.wakeFlag);
  const channel = openChannel(task.channel, task.slots);
  const decoder = decoderOf(task.decoder);
  Atomics.store(channel.int32, READY, 1);
  wake(wakeFlag, 0);
  for (;;) {
    drain(channel, decoder, wakeFlag);
    if (task.pollUs > 0) poll(channel, task.pollUs);
    if (Atomics.load(channel.int32, STOP) === 1 && channel.requests.depth === 0) return;
    Atomics.store(channel.int32, ASLEEP, 1);
    const rest = channel.requests.depth > 0 || Atomics.load(channel.int32, STOP) === 1;
    if (rest) Atomics.store(channel.int32, ASLEEP, 0);
    else Atomics.wait(channel.int32, ASLEEP, 1);
  }
}

/** Looks for a request or the end until one is there or the time is up. */
function poll({ requests, int32 }: Channel, pollUs: number): void {
  const untilNs = systemClock.nowNs() + pollUs * NS_PER_US;
  do {
    for (let look = 0; look < LOOKS_A_TIME; look += 1) {
      if (requests.depth > 0 || Atomics.load(int32, STOP) === 1) return;
    }
  } while (systemClock.nowNs() < untilNs);
}

/** Between two looks at the clock, which costs more. */
const LOOKS_A_TIME = 64;

function drain(channel: Channel, decoder: Decoder, wakeFlag: Int32Array<SharedArrayBuffer>): void {
  const { requests, replies, bytes, numbers } = channel;
  for (let request = requests.peek(); request !== -1; request = requests.peek()) {
    const start = request + REQUEST_HEAD_BYTES;
    const size = numbers[request / 8] ?? 0;
    // The main thread never has more in hand than the reply ring has slots, so one is free.
    const reply = replies.claim();
    try {
      writeValidation(numbers, reply, decoder.decode(bytes.subarray(start, start + size)));
    } catch {
      // The decoder promises not to throw. If it does, the sender is told, and the others are not
      // made to pay for it with the life of the thread.
      writeValidation(numbers, reply, FAILED);
    }
    requests.release();
    showFigures(channel, decoder);
    replies.publish();
    wake(wakeFlag, 0);
  }
}

function decoderOf(decoder: WorkerDecoder): Decoder {
  if (!("nativeHandle" in decoder)) return createDecoder(decoder);
  const loaded = loadNative();
  if (loaded.kind !== "loaded") throw new Error(`no native engine in this thread: ${loaded.kind}`);
  // Its figures are the process's, and read where the decoder was made.
  const { decode } = nativeDecoder(loaded.native, decoder.nativeHandle);
  return { decode, counters: NO_FIGURES };
}

const NO_FIGURES = { verified: 0, invalid: 0, keysFound: 0, keysMade: 0, keysEvicted: 0 };
const FAILED: Rejected = {
  kind: "refused",
  errorCode: DECODE_ERROR.worker_died,
  found: 0,
  needed: 0,
};

function showFigures({ figures }: Channel, { counters }: Decoder): void {
  figures[0] = counters.verified;
  figures[1] = counters.invalid;
  figures[2] = counters.keysFound;
  figures[3] = counters.keysMade;
  figures[4] = counters.keysEvicted;
}
