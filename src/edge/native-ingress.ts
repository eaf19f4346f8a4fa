/**
 * The fronts of an edge, joined to the rest of it: what they are given, and where what they did is
 * taken in. Without any, everything happens on the main thread.
 */

import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { dedupMemory } from "../dedup/recent-transactions.ts";
import type { DelegatedLimits } from "../limits/delegated-limits.ts";
import { GlobalDelegation } from "../limits/global-delegation.ts";
import { GlobalLimitStates } from "../limits/global-state.ts";
import { createDelegatedLimits, createKeyCacheSync } from "../limits/key-cache-sync.ts";
import { createKeyCacheMemory } from "../limits/shared-state.ts";
import type { EngineChoice } from "../native/choose.ts";
import type { NativeIngress } from "../native/contract.ts";
import { createIngressThreads, type IngressThreads } from "../native-ingress/ingress-threads.ts";
import type { Histogram } from "../runtime/histogram.ts";
import {
  SHARED_TARGET_TABLE_BYTES,
  SharedTargetTable,
} from "../send/native/shared-target-table.ts";
import type { EdgeKeys } from "./keys.ts";
import type { Pipeline } from "./pipeline.ts";

/** What the main thread and the fronts have in common. */
export interface NativeIngressContext {
  readonly count: number;
  /** Whether their threads go before others. */
  readonly realtime: boolean;
  readonly routes: SharedTargetTable;
  readonly routesMemory: SharedArrayBuffer;
  readonly keyCacheMemory: SharedArrayBuffer;
  readonly dedupMemory: SharedArrayBuffer;
  /** Lets threads that wait for this processor have their turn first. */
  readonly yieldThread: () => void;
  /** The limits that both charge; for the main thread's gate. */
  readonly delegated: DelegatedLimits;
  readonly native: NativeIngress;
}

/**
 * How many fronts an edge has. Where nobody says so it is one or a few, because beside a thread
 * that keeps the books they have the better latency; none where something else could not be as it
 * was asked for: a main thread that polls for requests, or workers that check transactions.
 */
function ingressThreadCount({ http, host, decode }: Config, isNative: boolean, processors: number) {
  if (http.threads !== null) return http.threads;
  const isFree = !host.busyPoll && decode.inline !== "never" && (decode.workers ?? 0) === 0;
  if (!isNative || processors < 2 || !isFree) return 0;
  return Math.min(
    INGRESS_THREADS_AUTO_MAX,
    Math.max(1, Math.floor(processors / PROCESSORS_PER_THREAD)),
  );
}

/** By themselves there are so many at most, one for so many processors. */
const INGRESS_THREADS_AUTO_MAX = 4;
const PROCESSORS_PER_THREAD = 4;
/** A front that goes before others leaves them a processor, whatever there is to do for it. */
const PROCESSORS_PER_REALTIME_THREAD = 2;

/** null without fronts. @throws SetupError where the engine cannot have any */
export function createNativeIngressContext(
  config: Config,
  engine: EngineChoice,
  processors: number,
): NativeIngressContext | null {
  const count = ingressThreadCount(config, engine.native !== null, processors);
  if (count === 0) {
    if (!config.host.realtime) return null;
    throw new SetupError(
      "host.realtime: it is for the threads of http.threads, and here are none; they take the " +
        "native engine, and a number where there are none by themselves",
    );
  }
  if (config.host.realtime && count * PROCESSORS_PER_REALTIME_THREAD > processors) {
    throw new SetupError(
      `host.realtime: ${count} of ${processors} processors could be taken from all other ` +
        "threads, also from those that hear of leaders; http.threads may be at most half as many",
    );
  }
  const { native } = engine;
  if (native === null) {
    throw new SetupError(
      "http.threads: the portable engine sends from the main thread alone, the native one from " +
        "any; 0 is needed here",
    );
  }
  const routesMemory = new SharedArrayBuffer(SHARED_TARGET_TABLE_BYTES);
  const keyCacheMemory = createKeyCacheMemory();
  const { realtime } = config.host;
  return {
    count,
    realtime,
    routes: new SharedTargetTable(routesMemory),
    routesMemory,
    keyCacheMemory,
    dedupMemory: dedupMemory(),
    // Fronts that go first have it already, and other programs are all who would gain.
    yieldThread: realtime ? () => {} : () => native.threadYield(),
    delegated: createDelegatedLimits(keyCacheMemory),
    native,
  };
}

export interface NativeIngressDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: Pick<EdgeKeys, "table" | "sharedLimits" | "usage">;
  readonly pipeline: Pick<Pipeline, "recordSend" | "recordDuplicate">;
  readonly latencies: Histogram;
  /** Has all that was done so far taken into the books. */
  readonly flushEvents: () => void;
  /** The native decoder's handle. */
  readonly decoder: number;
}

export interface NativeIngressOptions {
  /** The public address; port 0 takes any free one. */
  readonly host: string;
  readonly port: number;
  /** Clients of all fronts together, and connections of theirs to the server behind them. */
  readonly connectionsMax: number;
  /** What one address may hold of the clients' connections; it has the same share of the others. */
  readonly connectionsPerAddress: number;
  readonly upstreamConnectionsMax: number;
  /** How long a client may take for a request's head, and for its body. */
  readonly readTimeoutMs: number;
  /** The line by which fronts say what they know of a request that they relay. */
  readonly forwardedHeader: string;
}

/** The fronts on that ground; started once the HTTP server behind them listens. */
export function buildNativeIngress(
  context: NativeIngressContext,
  deps: NativeIngressDeps,
  { connectionsMax, upstreamConnectionsMax, ...options }: NativeIngressOptions,
): IngressThreads {
  const { clock, log, keys, pipeline, latencies, flushEvents, decoder } = deps;
  const { count, realtime, routes, delegated, yieldThread, native } = context;
  const { table, sharedLimits } = keys;
  const memory = context.keyCacheMemory;
  const upstreamConnectionsEach = Math.max(1, Math.floor(upstreamConnectionsMax / count));
  const share = options.connectionsPerAddress / connectionsMax;
  sharedLimits?.join(new GlobalLimitStates(memory));
  const shared = sharedLimits === null ? null : new GlobalDelegation(sharedLimits);
  const keyCache = createKeyCacheSync({ clock, keys: table, delegated, shared, memory });
  const ingressThreads = createIngressThreads(
    {
      clock,
      native,
      yieldThread,
      flushEvents,
      accounting: pipeline,
      keyCache,
      latency: latencies,
      usage: keys.usage,
      onDeath(cause) {
        log.error({ err: cause }, "a front died, and its clients with it: the edge ends");
        // Out of every promise: the process ends by it, and whoever watches it starts it anew.
        setImmediate(() => {
          throw new Error("a front died", { cause });
        });
      },
    },
    {
      ...options,
      count,
      engine: () => routes.engine,
      decoder,
      realtime,
      routes: context.routesMemory,
      keyCache: context.keyCacheMemory,
      dedup: context.dedupMemory,
      connectionsMax: Math.ceil(connectionsMax / count),
      upstreamConnectionsMax: upstreamConnectionsEach,
      upstreamConnectionsPerAddress: Math.max(
        1,
        Math.ceil(upstreamConnectionsEach * Math.min(1, share)),
      ),
    },
  );
  routes.beforeDrain = ingressThreads.reconcile;
  routes.yieldThread = ingressThreads.yieldThread;
  return ingressThreads;
}
