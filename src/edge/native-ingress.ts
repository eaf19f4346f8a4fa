/**
 * The ingress threads of an edge, connected to the rest of it. Without any, the main thread accepts
 * all requests.
 */

import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { IngressResources } from "../engine/engine.ts";
import { type EngineChoice, NATIVE_ADVICE } from "../native/choose.ts";
import type { NativeIngress, NativeKeys } from "../native/contract.ts";
import { EngineKeys } from "../native-ingress/engine-keys.ts";
import {
  createIngressThreads,
  type IngressThreads,
  type IngressThreadsOptions,
} from "../native-ingress/ingress-threads.ts";
import type { EdgeKeys } from "./keys.ts";

/** What an edge with ingress threads has besides. */
export interface NativeIngressContext {
  readonly count: number;
  /** Whether the threads get real-time priority. */
  readonly realtime: boolean;
  /** The keys of ingress threads, and the limits that they and the main thread charge. */
  readonly keys: EngineKeys;
  readonly native: NativeIngress & NativeKeys;
}

/**
 * The number of ingress threads. By default two or more, so that one takes what arrives while the
 * other waits for a processor; none beside a main thread that polls for requests.
 *
 * Decision: docs/decisions/0060-at-least-two-ingress-threads.md
 */
function ingressThreadCount({ http, host }: Config, isNative: boolean, processors: number) {
  if (http.threads !== null) return http.threads;
  if (!isNative || processors < 2 || host.busyPoll) return 0;
  const wanted = Math.max(INGRESS_THREADS_AUTO_MIN, Math.floor(processors / PROCESSORS_PER_THREAD));
  const count = Math.min(INGRESS_THREADS_AUTO_MAX, wanted);
  if (!host.realtime) return count;
  return Math.min(count, Math.floor(processors / PROCESSORS_PER_REALTIME_THREAD));
}

/** The default is one per this many processors, within these bounds. */
const PROCESSORS_PER_THREAD = 4;
const INGRESS_THREADS_AUTO_MIN = 2;
const INGRESS_THREADS_AUTO_MAX = 4;
/** A real-time ingress thread leaves other threads one processor, whatever its load. */
const PROCESSORS_PER_REALTIME_THREAD = 2;

/**
 * How many ingress threads an edge has, 0 for none. @throws SetupError where the engine cannot have
 * them, or this machine not with that priority
 */
export function ingressThreadsOf(
  config: Config,
  { native }: EngineChoice,
  processors: number,
): number {
  const count = ingressThreadCount(config, native !== null, processors);
  if (config.quic.listen !== null && (count === 0 || native === null)) {
    throw new SetupError(
      "quic.listen: QUIC clients are served by the threads of http.threads, and there are none: " +
        "they need the native engine, and http.threads = 1 where the default is none",
    );
  }
  if (count === 0) {
    if (config.http.tls !== null) {
      throw new SetupError(
        "http.tls: the threads of http.threads speak TLS, and there are none: they need the " +
          "native engine, and http.threads = 1 where the default is none; or leave http.tls out, " +
          "and let a proxy in front of the edge speak TLS",
      );
    }
    if (!config.host.realtime) return 0;
    throw new SetupError(
      "host.realtime: it applies to the threads of http.threads, and there are none; they need " +
        "the native engine, and an explicit number where the default is none",
    );
  }
  if (config.host.realtime && count * PROCESSORS_PER_REALTIME_THREAD > processors) {
    throw new SetupError(
      `host.realtime: ${count} of ${processors} processors could be taken from all other ` +
        "threads, also from those that track leaders; http.threads may be at most half as many",
    );
  }
  if (native === null) {
    throw new SetupError(
      "http.threads: the portable engine sends from the main thread only, the native one from " +
        `any: set 0, or ${NATIVE_ADVICE}`,
    );
  }
  return count;
}

/** null without ingress threads. @throws SetupError as `ingressThreadsOf` */
export function createNativeIngressContext(
  config: Config,
  engine: EngineChoice,
  processors: number,
): NativeIngressContext | null {
  const count = ingressThreadsOf(config, engine, processors);
  const { native } = engine;
  if (count === 0 || native === null) return null;
  return { count, realtime: config.host.realtime, keys: new EngineKeys(native), native };
}

export interface NativeIngressDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: Pick<EdgeKeys, "table" | "globalLimits">;
  /** Reads the engine's events, so that accounting has all submissions and outcomes so far. */
  readonly flushEvents: () => void;
  /** What they share with the engine. */
  readonly engine: IngressResources;
}

/**
 * Connections are those of all ingress threads together. One address has the same share of their
 * upstream connections as of clients' connections.
 */
export type NativeIngressOptions = Omit<
  IngressThreadsOptions,
  | keyof IngressResources
  | "count"
  | "engine"
  | "path"
  | "realtime"
  | "upstreamConnectionsPerAddress"
>;

/** The ingress threads for that context; started once their upstream server listens. */
export function buildNativeIngress(
  context: NativeIngressContext,
  deps: NativeIngressDeps,
  { connectionsMax, upstreamConnectionsMax, ...options }: NativeIngressOptions,
): IngressThreads {
  const { clock, log, keys, flushEvents, engine } = deps;
  const { count, realtime, native } = context;
  const { table, globalLimits } = keys;
  const upstreamConnectionsEach = Math.max(1, Math.floor(upstreamConnectionsMax / count));
  const share = options.connectionsPerAddress / connectionsMax;
  globalLimits?.join(context.keys);
  table.follow(context.keys);
  return createIngressThreads(
    {
      clock,
      native,
      flushEvents,
      keys: context.keys,
      onDeath(cause) {
        log.error(
          { err: cause },
          "an ingress thread died and its clients' connections with it: exiting",
        );
        // Thrown outside of every promise: it ends the process, which its supervisor restarts.
        setImmediate(() => {
          throw new Error("an ingress thread died", { cause });
        });
      },
    },
    {
      ...options,
      count,
      engine: engine.engineHandle,
      decoder: engine.decoder,
      realtime,
      path: engine.pathHandle,
      connectionsMax: Math.ceil(connectionsMax / count),
      upstreamConnectionsMax: upstreamConnectionsEach,
      upstreamConnectionsPerAddress: Math.max(
        1,
        Math.ceil(upstreamConnectionsEach * Math.min(1, share)),
      ),
    },
  );
}
