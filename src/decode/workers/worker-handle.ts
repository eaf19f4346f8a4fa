// Hot path: an offer copies the bytes twice and creates one packet and one view.
/**
 * The main thread's handle of one worker thread: its pending transactions, and whether it is up.
 *
 *     down ─run─▶ starting ─ready─▶ up ─┬─ stop flag, all pending answered ─▶ stopped
 *      ▲                                │
 *      └── delay, doubled each time ◀───┴─ died: pending answered `worker_died`
 *
 * The worker answers in request order, so the pending transactions are a queue in a fixed array,
 * each entry with room for the transaction's bytes: they outlive the caller's view, and the packet
 * passed to `done` refers to them. At most as many are pending as the rings have slots, so an offer
 * either fits or is rejected, and a reply always has a slot. A new thread gets new memory, because
 * the old memory may be in an inconsistent state.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import { DECODE_ERROR } from "../../core/decode-errors.ts";
import type { Packet, Rejected, ValidationResult } from "../../core/flow.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../../core/limits.ts";
import { createPacket } from "../../core/packet.ts";
import { wake } from "../../runtime/wake-flag.ts";
import type { DecoderOptions } from "../decoder.ts";
import { WORKER_RESTART_MS_MAX, WORKER_RESTART_MS_MIN, WORKER_SETTLED_MS } from "../limits.ts";
import type { WorkerPool } from "./piscina-pool.ts";
import {
  ASLEEP,
  type Channel,
  COUNTERS,
  channelMemory,
  openChannel,
  READY,
  REQUEST_HEAD_BYTES,
  readValidation,
  STOP,
} from "./worker-channel.ts";

/** Called once for each packet. `packet.bytes` are borrowed until it returns. */
export type DecodeDone = (packet: Packet, validation: ValidationResult) => void;

export interface WorkerHandleDeps {
  readonly clock: Clock;
  readonly workers: Pick<WorkerPool, "run">;
  /** The thread is up. */
  readonly onReady: () => void;
  /** The thread died; another starts after `restartMs`. */
  readonly onDeath: (error: unknown, restartMs: number) => void;
}

export interface WorkerHandleOptions {
  readonly wakeFlag: SharedArrayBuffer;
  readonly slots: number;
  readonly decoder: DecoderOptions;
}

const DIED: Rejected = {
  kind: "rejected",
  errorCode: DECODE_ERROR.worker_died,
  found: 0,
  needed: 0,
};

interface Waiting {
  readonly packet: Packet;
  readonly done: DecodeDone;
}

export class WorkerHandle {
  readonly #deps: WorkerHandleDeps;
  readonly #options: WorkerHandleOptions;
  /** Entries of pending transactions, and for each the bytes. */
  readonly #waiting: (Waiting | null)[];
  readonly #copies: Uint8Array;
  #channel: Channel;
  #oldest = 0;
  #pendingCount = 0;
  #lost = 0;
  #up = false;
  #stopping = false;
  #startedNs = 0;
  #deathsLately = 0;
  #restart: Timer | null = null;
  #life: Promise<void> = Promise.resolve();
  /** The counters of threads that have ended. */
  readonly #pastCounters = new Float64Array(COUNTERS);

  /** A handle whose thread is down until `start`. */
  constructor(deps: WorkerHandleDeps, options: WorkerHandleOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#waiting = new Array(options.slots).fill(null);
    this.#copies = new Uint8Array(options.slots * V1_TRANSACTION_BYTES_MAX);
    this.#channel = openChannel(channelMemory(options.slots), options.slots);
  }

  /** Whether the thread is up and accepts transactions. */
  get up(): boolean {
    return this.#up;
  }

  /** Transactions passed to the thread and not answered. */
  get pendingCount(): number {
    return this.#pendingCount;
  }

  /** Transactions that were answered `worker_died`. */
  get lost(): number {
    return this.#lost;
  }

  /** One counter of the decoder, over all threads of this handle; see `Channel.counters`. */
  counter(index: number): number {
    return (this.#pastCounters[index] ?? 0) + (this.#channel.counters[index] ?? 0);
  }

  /** Passes a transaction to the thread. False, without effect, when the thread is down or full. */
  offer(packet: Packet, done: DecodeDone): boolean {
    const { slots } = this.#options;
    if (!this.#up || this.#pendingCount === slots) return false;
    const channel = this.#channel;
    const request = channel.requests.claim();
    if (request === -1) return false;
    const place = (this.#oldest + this.#pendingCount) % slots;
    const size = packet.bytes.length;
    const start = place * V1_TRANSACTION_BYTES_MAX;
    const bytes = this.#copies.subarray(start, start + size);
    bytes.set(packet.bytes);
    const { id, account, receivedNs, maxRetries, offeredLamports } = packet;
    const own = createPacket(id, bytes, account, receivedNs, maxRetries, offeredLamports);
    this.#waiting[place] = { packet: own, done };
    this.#pendingCount += 1;
    channel.numbers[request / 8] = size;
    channel.bytes.set(bytes, request + REQUEST_HEAD_BYTES);
    channel.requests.publish();
    wake(channel.int32, ASLEEP);
    return true;
  }

  /** Processes the results that have arrived, and checks whether the thread is up. */
  drain(): void {
    if (!this.#up && !this.#stopping && Atomics.load(this.#channel.int32, READY) === 1) {
      this.#up = true;
      this.#deps.onReady();
    }
    const { replies, numbers } = this.#channel;
    for (let reply = replies.peek(); reply !== -1; reply = replies.peek()) {
      const validation = readValidation(numbers, reply);
      replies.release();
      this.#respond(validation);
    }
  }

  start(): void {
    const { wakeFlag, slots, decoder } = this.#options;
    this.#restart = null;
    this.#startedNs = this.#deps.clock.nowNs();
    for (let i = 0; i < COUNTERS; i += 1) this.#pastCounters[i] = this.counter(i);
    const memory = channelMemory(slots);
    this.#channel = openChannel(memory, slots);
    this.#life = this.#deps.workers.run({ wakeFlag, channel: memory, slots, decoder }).then(
      () => this.#ended(new Error("the task returned without a stop request")),
      (error: unknown) => this.#ended(error),
    );
  }

  /** Lets the thread finish its pending work, and resolves when it ended. Accepts nothing more. */
  stop(): Promise<void> {
    this.#stopping = true;
    this.#up = false;
    this.#restart?.cancel();
    Atomics.store(this.#channel.int32, STOP, 1);
    wake(this.#channel.int32, ASLEEP);
    return this.#life;
  }

  /**
   * Answers the oldest transaction. Its entry is reused only after that: its bytes are borrowed.
   */
  #respond(validation: ValidationResult): void {
    const entry = this.#waiting[this.#oldest];
    try {
      if (entry) entry.done(entry.packet, validation);
    } finally {
      this.#waiting[this.#oldest] = null;
      this.#oldest = (this.#oldest + 1) % this.#options.slots;
      this.#pendingCount -= 1;
    }
  }

  /** The thread has ended. Results written before count; the rest is answered `worker_died`. */
  #ended(error: unknown): void {
    this.drain();
    this.#up = false;
    // The dead thread's flag is stale, and it is read before the next thread starts.
    Atomics.store(this.#channel.int32, READY, 0);
    this.#lost += this.#pendingCount;
    while (this.#pendingCount > 0) this.#respond(DIED);
    if (this.#stopping) return;
    const livedMs = (this.#deps.clock.nowNs() - this.#startedNs) / NS_PER_MS;
    if (livedMs > WORKER_SETTLED_MS) this.#deathsLately = 0;
    const restartMs = Math.min(
      WORKER_RESTART_MS_MIN * 2 ** this.#deathsLately,
      WORKER_RESTART_MS_MAX,
    );
    this.#deathsLately += 1;
    this.#restart = this.#deps.clock.after(restartMs, () => this.start());
    this.#deps.onDeath(error, restartMs);
  }
}
