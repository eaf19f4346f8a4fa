/**
 * Decode workers without threads: the test controls when one comes up, how many results it writes
 * and when it dies. They use the same shared memory as the real ones.
 */

import { createDecoder } from "../../src/decode/decoder.ts";
import type { WorkerTask } from "../../src/decode/workers/decode.worker.ts";
import type { WorkerPool } from "../../src/decode/workers/piscina-pool.ts";
import {
  openChannel,
  READY,
  REQUEST_HEAD_BYTES,
  STOP,
  writeValidation,
} from "../../src/decode/workers/worker-channel.ts";
import { wake } from "../../src/runtime/wake-flag.ts";

export interface FakeWorker {
  comeUp(): void;
  /** Processes up to `count` requests; returns how many there were. */
  work(count?: number): number;
  die(error?: Error): void;
  /** Dies after clearing the wake flag and before waking the main thread. */
  dieRinging(): void;
  /** Processes everything and returns, when the stop flag is set. */
  finish(): void;
  readonly toldToStop: boolean;
}

export interface FakeWorkers extends WorkerPool {
  /** Every worker that was ever started, in this order. */
  readonly started: readonly FakeWorker[];
}

export function createFakeWorkers(): FakeWorkers {
  const started: FakeWorker[] = [];
  const rejects: ((error: Error) => void)[] = [];
  return {
    started,
    threads: [],
    run: (task) =>
      new Promise<void>((resolve, reject) => {
        started.push(createFakeWorker(task, resolve, reject));
        rejects.push(reject);
      }),
    async close() {
      for (const reject of rejects) reject(new Error("closed"));
    },
  };
}

function createFakeWorker(
  task: WorkerTask,
  resolve: () => void,
  reject: (error: Error) => void,
): FakeWorker {
  const wakeFlag = new Int32Array(task.wakeFlag);
  const channel = openChannel(task.channel, task.slots);
  const decoder = createDecoder(task.decoder);
  const work = (count = Number.POSITIVE_INFINITY): number => {
    let done = 0;
    for (; done < count; done += 1) {
      const request = channel.requests.peek();
      if (request === -1) break;
      const start = request + REQUEST_HEAD_BYTES;
      const bytes = channel.bytes.slice(start, start + (channel.numbers[request / 8] ?? 0));
      writeValidation(channel.numbers, channel.replies.claim(), decoder.decode(bytes));
      channel.requests.release();
      channel.replies.publish();
      channel.counters[0] = decoder.counters.verified;
    }
    wake(wakeFlag, 0);
    return done;
  };
  return {
    comeUp() {
      Atomics.store(channel.int32, READY, 1);
      wake(wakeFlag, 0);
    },
    work,
    die: (error = new Error("killed by the test")) => reject(error),
    dieRinging() {
      Atomics.compareExchange(wakeFlag, 0, 1, 0);
      reject(new Error("killed by the test"));
    },
    finish() {
      work();
      resolve();
    },
    get toldToStop() {
      return Atomics.load(channel.int32, STOP) === 1;
    },
  };
}
