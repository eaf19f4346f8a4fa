// Hot path: an offer copies the bytes twice and makes one packet and one view.
/**
 * One worker thread as the main thread sees it: what it has in hand, and whether it lives.
 *
 *     down ─run─▶ starting ─ready─▶ up ─┬─ told to stop, in hand answered ─▶ stopped
 *      ▲                                │
 *      └── wait, doubled each time ◀────┴─ died: in hand answered `worker_died`
 *
 * The worker answers in the order it was asked, so what is in hand is a queue in a fixed array,
 * each place with room for the transaction's bytes: they outlive the caller's view and are what
 * the answer's packet shows. Never more is in hand than the rings have slots, so an offer either
 * fits or is turned down, and a reply always has a place. A new thread gets new memory, because
 * the old may have been left in the middle of anything.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import { DECODE_ERROR } from "../../core/decode-errors.ts";
import type { Packet, Rejected, ValidationResult } from "../../core/flow.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../../core/limits.ts";
import { createPacket } from "../../core/packet.ts";
import { wake } from "../../runtime/wake-flag.ts";
import type { WorkerDecoder } from "../decoder.ts";
import { WORKER_RESTART_MS_MAX, WORKER_RESTART_MS_MIN, WORKER_SETTLED_MS } from "../limits.ts";
import type { WorkerPool } from "./piscina-pool.ts";
import {
  ASLEEP,
  type Channel,
  channelMemory,
  FIGURE_COUNT,
  openChannel,
  READY,
  REQUEST_HEAD_BYTES,
  readValidation,
  STOP,
} from "./worker-channel.ts";

/** Told once for each packet. `packet.bytes` are lent until it returns. */
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
  readonly decoder: WorkerDecoder;
  readonly pollUs: number;
}

const DIED: Rejected = {
  kind: "refused",
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
  /** Places for what is in hand, and for each the bytes. */
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
  /** The figures of threads that are gone. */
  readonly #figuresPast = new Float64Array(FIGURE_COUNT);

  /** A lane whose thread is down until `start`. */
  constructor(deps: WorkerHandleDeps, options: WorkerHandleOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#waiting = new Array(options.slots).fill(null);
    this.#copies = new Uint8Array(options.slots * V1_TRANSACTION_BYTES_MAX);
    this.#channel = openChannel(channelMemory(options.slots), options.slots);
  }

  /** Whether the thread lives and takes transactions. */
  get up(): boolean {
    return this.#up;
  }

  /** Transactions given to the thread and not answered. */
  get pendingCount(): number {
    return this.#pendingCount;
  }

  /** Transactions that were answered `worker_died`. */
  get lost(): number {
    return this.#lost;
  }

  /** One of the decoder's counters over all threads that this lane had; see `Channel.figures`. */
  figure(index: number): number {
    return (this.#figuresPast[index] ?? 0) + (this.#channel.figures[index] ?? 0);
  }

  /** Hands a transaction over. False, and nothing happened, when the thread is down or full. */
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
    const { id, account, receivedNs, maxRetries, priorityLamports } = packet;
    const own = createPacket(id, bytes, account, receivedNs, maxRetries, priorityLamports);
    this.#waiting[place] = { packet: own, done };
    this.#pendingCount += 1;
    channel.numbers[request / 8] = size;
    channel.bytes.set(bytes, request + REQUEST_HEAD_BYTES);
    channel.requests.publish();
    wake(channel.int32, ASLEEP);
    return true;
  }

  /** Tells the answers that have arrived, and sees whether the thread came up. */
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
    const { wakeFlag, slots, decoder, pollUs } = this.#options;
    this.#restart = null;
    this.#startedNs = this.#deps.clock.nowNs();
    for (let i = 0; i < FIGURE_COUNT; i += 1) this.#figuresPast[i] = this.figure(i);
    const memory = channelMemory(slots);
    this.#channel = openChannel(memory, slots);
    this.#life = this.#deps.workers.run({ wakeFlag, channel: memory, slots, decoder, pollUs }).then(
      () => this.#ended(new Error("the task returned without being told to")),
      (error: unknown) => this.#ended(error),
    );
  }

  /** Lets the thread finish what it has in hand, and resolves when it ended. Takes nothing more. */
  stop(): Promise<void> {
    this.#stopping = true;
    this.#up = false;
    this.#restart?.cancel();
    Atomics.store(this.#channel.int32, STOP, 1);
    wake(this.#channel.int32, ASLEEP);
    return this.#life;
  }

  /** Tells the oldest one's answer. Its place is free only after that: its bytes are lent. */
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

  /** The thread is gone. What came back before counts; the rest gets the fault. */
  #ended(error: unknown): void {
    this.drain();
    this.#up = false;
    // What the dead thread said of itself holds no longer, and this is looked at before the next.
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
