/**
 * All worker threads together: starts them, finds the least busy, waits for their results, and
 * stops them.
 *
 * Decision: docs/decisions/0011-decode-the-first-of-a-turn-inline.md
 */

import type { Clock } from "../../core/clock.ts";
import { SetupError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import { computedCounters } from "../../runtime/shared-counters.ts";
import { WakeFlag } from "../../runtime/wake-flag.ts";
import type { DecoderOptions } from "../decoder.ts";
import { WORKERS_START_MS_MAX, WORKERS_STOP_MS_MAX } from "../limits.ts";
import { VERIFIER_COUNTERS, type VerifierCounters } from "../verify.ts";
import type { WorkerPool } from "./piscina-pool.ts";
import { WorkerHandle } from "./worker-handle.ts";

export interface WorkerGroupDeps {
  readonly clock: Clock;
  readonly workers: WorkerPool;
  readonly log: Log;
}

export interface WorkerGroupOptions {
  readonly workers: number;
  readonly slots: number;
  readonly decoder: DecoderOptions;
}

export class WorkerGroup {
  readonly #deps: WorkerGroupDeps;
  readonly #handles: WorkerHandle[] = [];
  /** Set by a worker that has a result. */
  readonly #wakeFlag = new WakeFlag(() => {
    for (const worker of this.#handles) worker.drain();
  });
  #deaths = 0;
  #stopped: Promise<void> | null = null;
  /**
   * Called when every worker is up, or with an error when one died first; null when not awaited.
   */
  #onStart: ((error: unknown) => void) | null = null;
  readonly verifierCounters: VerifierCounters;

  /** The threads start with `start`. */
  constructor(deps: WorkerGroupDeps, options: WorkerGroupOptions) {
    this.#deps = deps;
    const { slots, decoder } = options;
    const workerDeps = {
      clock: deps.clock,
      workers: deps.workers,
      onReady: () => this.#workerReady(),
      onDeath: (error: unknown, restartMs: number) => this.#workerDied(error, restartMs),
    };
    for (let i = 0; i < options.workers; i += 1) {
      this.#handles.push(
        new WorkerHandle(workerDeps, { wakeFlag: this.#wakeFlag.memory, slots, decoder }),
      );
    }
    this.verifierCounters = computedCounters(VERIFIER_COUNTERS, (_, index) =>
      this.#handles.reduce((sum, worker) => sum + worker.counter(index), 0),
    );
  }

  /** Transactions pending in workers. */
  get depth(): number {
    let sum = 0;
    for (const worker of this.#handles) sum += worker.pendingCount;
    return sum;
  }

  /** Workers that are up and accept transactions. */
  get up(): number {
    return this.#handles.filter((worker) => worker.up).length;
  }

  /** Transactions that were answered `worker_died`. */
  get lost(): number {
    return this.#handles.reduce((sum, worker) => sum + worker.lost, 0);
  }

  /** Deaths of worker threads while the group was not being stopped. */
  get deaths(): number {
    return this.#deaths;
  }

  /** The worker that is up with the fewest pending; null when none is up. */
  leastBusy(): WorkerHandle | null {
    let best: WorkerHandle | null = null;
    for (const worker of this.#handles) {
      if (worker.up && (best === null || worker.pendingCount < best.pendingCount)) best = worker;
    }
    return best;
  }

  /** Resolves when all are up; a SetupError when one dies before, and then none is left. */
  async start(): Promise<void> {
    if (this.#handles.length === 0) return;
    const outcome = new Promise<unknown>((resolve) => {
      this.#onStart = resolve;
    });
    const late = new Error(`not up after ${WORKERS_START_MS_MAX} ms`);
    const timer = this.#deps.clock.after(WORKERS_START_MS_MAX, () => this.#onStart?.(late));
    for (const worker of this.#handles) worker.start();
    this.#wakeFlag.start();
    const cause = await outcome;
    timer.cancel();
    this.#onStart = null;
    if (cause === null) return;
    await this.stop();
    throw new SetupError("the decode workers could not be started", { cause });
  }

  /** Lets every worker finish its pending work; what is not done in time fails. */
  stop(): Promise<void> {
    this.#onStart?.(new Error("stopped before"));
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const { clock, workers } = this.#deps;
    const timer = clock.after(WORKERS_STOP_MS_MAX, () => void workers.close());
    await Promise.all(this.#handles.map((worker) => worker.stop()));
    timer.cancel();
    await workers.close();
    this.#wakeFlag.stop();
  }

  #workerReady(): void {
    if (this.up === this.#handles.length) this.#onStart?.(null);
  }

  #workerDied(error: unknown, restartMs: number): void {
    this.#deaths += 1;
    // The thread may have cleared the flag and died before it woke the main thread.
    this.#wakeFlag.ring();
    this.#deps.log.error(
      { error: String(error), restartMs, lost: this.lost },
      "a decode worker died; a replacement starts after the delay",
    );
    this.#onStart?.(error);
  }
}
