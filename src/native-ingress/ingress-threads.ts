/**
 * All fronts, as the main thread has them: starts their threads, gives them passes, and takes what
 * they did into the books ("adoption"). A front sends first and tells afterwards; whatever on this
 * thread depends on what was sent calls `reconcile` before. The threads are the native engine's
 * (`native/src/submit`), and no JavaScript runs on them.
 *
 * The books can wait and a front cannot: where both have one processor, the system would let the
 * books go on for as long as a front takes for ten transactions. So they give way after every few
 * (p99 at 5,000 tx/s on two processors: 0.6 to 0.8 times).
 *
 * A front that dies ends the process: its clients' connections are gone, and who starts the edge
 * anew gives them others.
 *
 * Decision: docs/decisions/0002-ingress-threads-send-first.md
 */

import { SetupError } from "../core/errors.ts";
import type { HttpStats } from "../http/request-tracker.ts";
import type { Principal } from "../limits/access-control.ts";
import type { KeyCacheCounters } from "../limits/key-cache-sync.ts";
import { sumOf } from "../runtime/shared-counters.ts";
import {
  IngressThread,
  type IngressThreadConfig,
  type IngressThreadDeps,
} from "./ingress-thread.ts";
import { INGRESS_THREADS_STOP_MS_MAX, RECORDS_BACKLOG_MAX, RECORDS_PER_SLICE } from "./limits.ts";
import {
  type CachedKeyPrincipal,
  RecordConsumer,
  type RecordConsumerCounters,
  type RecordConsumerDeps,
} from "./record-consumer.ts";
import type { RecordReader } from "./record-ring.ts";
import { PROXY_REASONS, type ProxiedCounts } from "./thread-counters.ts";

export interface IngressThreadsDeps extends RecordConsumerDeps, IngressThreadDeps {
  /** Lets threads that wait for this processor have their turn first. */
  readonly yieldThread: () => void;
  /**
   * Calls `reconcile`, and has the engine's news taken in as well, so that nobody is woken for them a
   * moment later; for when a front woke this thread.
   */
  readonly flushEvents: () => void;
}

export interface IngressThreadsOptions
  extends Omit<IngressThreadConfig, "engine" | "upstreamPort"> {
  readonly count: number;
  /** The native engine's handle, once it runs. */
  readonly engine: () => number;
  /** The public address. */
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Connections that one address may hold, over all fronts. */
  readonly connectionsPerAddress: number;
}

export interface IngressThreads {
  /** Takes into the books all that fronts did so far. */
  reconcile(): void;
  /** Lets a front that waits for this processor have its turn, unless a ring could fill up. */
  yieldThread(): void;
  /** That front relayed a submission of this key, which is good: it may get a pass. */
  known(thread: number, token: string, principal: Principal): void;
  /** What each counts. */
  readonly figures: readonly HttpStats[];
  /** Requests that were left to the main thread. */
  readonly proxied: ProxiedCounts;
  /** Records that are not in the books yet. */
  readonly waiting: number;
  readonly counters: RecordConsumerCounters;
  readonly keyCache: KeyCacheCounters;
  /**
   * Listens. What they leave goes to `upstreamPort` of loopback.
   *
   * @throws SetupError when a thread does not come up, or the port is taken
   */
  start(upstreamPort: number): { readonly port: number };
  /** New work is refused from now on. */
  drain(): void;
  /** Resolves when what is in hand is answered, and in the books. @throws what one died of then */
  stop(): Promise<void>;
}

export function createIngressThreads(
  deps: IngressThreadsDeps,
  options: IngressThreadsOptions,
): IngressThreads {
  const { clock, native, keyCache } = deps;
  const principals: CachedKeyPrincipal[] = [];
  const consumer = new RecordConsumer(deps, principals);
  const threads = Array.from(
    { length: options.count },
    () => new IngressThread(deps, principals, reconcile),
  );

  function reconcile(): void {
    for (const { records } of threads) reconcileRing(records);
  }

  /** No more than was there: what comes meanwhile rings for itself. */
  function reconcileRing(records: RecordReader): void {
    const depth = records.depth;
    for (let taken = 1; taken <= depth && records.read(consumer.take); taken += 1) {
      if (taken % RECORDS_PER_SLICE === 0) yieldThread();
    }
  }

  function yieldThread(): void {
    for (const { records } of threads) if (records.depth >= RECORDS_BACKLOG_MAX) return;
    deps.yieldThread();
  }

  /** A front has something. */
  function onWake(): void {
    // First of all: what comes from now on wakes again.
    for (const thread of threads) thread.onWake();
    deps.flushEvents();
  }

  function listen(): number {
    const handles = Uint32Array.from(threads, ({ handle }) => handle);
    const { host, port, connectionsPerAddress } = options;
    const code = native.ingressThreadsListen(handles, host, port, connectionsPerAddress);
    if (code > 0) return code;
    throw new SetupError(
      `http.listen: cannot listen on ${host}:${port}; either the port is taken, ` +
        "perhaps by another edge, or the address is not one of this machine",
    );
  }

  return {
    reconcile,
    yieldThread,
    known: (thread, token, principal) => threads[thread]?.grant(token, principal),
    counters: consumer.counters,
    keyCache: keyCache.counters,
    figures: threads.map(({ figures }) => figures),
    proxied: sumOf(
      PROXY_REASONS,
      threads.map(({ figures }) => figures.proxied),
    ),
    get waiting() {
      return threads.reduce((sum, { records }) => sum + records.depth, 0);
    },
    start(upstreamPort) {
      try {
        const task = { ...options, engine: options.engine(), upstreamPort };
        for (const [number, thread] of threads.entries()) thread.start(task, number, onWake);
        return { port: listen() };
      } catch (error) {
        for (const thread of threads) thread.kill();
        throw error;
      }
    },
    drain() {
      for (const thread of threads) thread.drain();
    },
    async stop() {
      const kill = clock.after(INGRESS_THREADS_STOP_MS_MAX, () => {
        for (const thread of threads) thread.kill();
      });
      // All of them, so that a client has its answer, if only a refusal, while any is in hand.
      await Promise.all(threads.map((thread) => thread.stop()));
      const ends = await Promise.allSettled(threads.map((thread) => thread.end()));
      kill.cancel();
      keyCache.stop();
      reconcile();
      const failed = ends.find((end) => end.status === "rejected");
      if (failed !== undefined) throw failed.reason;
    },
  };
}
