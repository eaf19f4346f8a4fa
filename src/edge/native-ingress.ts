/**
 * The fronts of an edge, joined to the rest of it: what they are given, and where what they did is
 * taken in. Without any, everything happens on the main thread.
 */

import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { seenMemory } from "../dedup/recent-transactions.ts";
import type { HeldLimits } from "../limits/delegated-limits.ts";
import { SharedHolds } from "../limits/global-delegation.ts";
import { SharedCells } from "../limits/global-state.ts";
import { createHeldLimits, createPasses } from "../limits/key-cache-sync.ts";
import { passMemory } from "../limits/shared-state.ts";
import type { EngineChoice } from "../native/choose.ts";
import type { NativeFronts } from "../native/contract.ts";
import { createFronts, type Fronts } from "../native-ingress/ingress-threads.ts";
import type { Histogram } from "../runtime/histogram.ts";
import { SHARED_ROUTES_BYTES, SharedRoutes } from "../send/native/shared-route-table.ts";
import type { EdgeKeys } from "./keys.ts";
import type { Pipeline } from "./pipeline.ts";

/** What the main thread and the fronts have in common. */
export interface FrontsGround {
  readonly count: number;
  /** Whether their threads go before others. */
  readonly realtime: boolean;
  readonly routes: SharedRoutes;
  readonly routesMemory: SharedArrayBuffer;
  readonly passesMemory: SharedArrayBuffer;
  readonly seenMemory: SharedArrayBuffer;
  /** Lets threads that wait for this processor have their turn first. */
  readonly giveWay: () => void;
  /** The limits that both charge; for the main thread's gate. */
  readonly held: HeldLimits;
  readonly native: NativeFronts;
}

/**
 * How many fronts an edge has. Where nobody says so it is one or a few, because beside a thread
 * that keeps the books they have the better latency; none where something else could not be as it
 * was asked for: a main thread that polls for requests, or workers that check transactions.
 */
function frontsCountOf({ http, host, decode }: Config, isNative: boolean, processors: number) {
  if (http.threads !== null) return http.threads;
  const isFree = !host.busyPoll && decode.inline !== "never" && (decode.workers ?? 0) === 0;
  if (!isNative || processors < 2 || !isFree) return 0;
  return Math.min(FRONTS_AUTO_MAX, Math.max(1, Math.floor(processors / PROCESSORS_A_FRONT)));
}

/** By themselves there are so many at most, one for so many processors. */
const FRONTS_AUTO_MAX = 4;
const PROCESSORS_A_FRONT = 4;
/** A front that goes before others leaves them a processor, whatever there is to do for it. */
const PROCESSORS_A_REALTIME_FRONT = 2;

/** null without fronts. @throws SetupError where the engine cannot have any */
export function frontsGroundOf(
  config: Config,
  engine: EngineChoice,
  processors: number,
): FrontsGround | null {
  const count = frontsCountOf(config, engine.native !== null, processors);
  if (count === 0) {
    if (!config.host.realtime) return null;
    throw new SetupError(
      "host.realtime: it is for the threads of http.threads, and here are none; they take the " +
        "native engine, and a number where there are none by themselves",
    );
  }
  if (config.host.realtime && count * PROCESSORS_A_REALTIME_FRONT > processors) {
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
  const routesMemory = new SharedArrayBuffer(SHARED_ROUTES_BYTES);
  const passesMemory = passMemory();
  const { realtime } = config.host;
  return {
    count,
    realtime,
    routes: new SharedRoutes(routesMemory),
    routesMemory,
    passesMemory,
    seenMemory: seenMemory(),
    // Fronts that go first have it already, and other programs are all who would gain.
    giveWay: realtime ? () => {} : () => native.threadYield(),
    held: createHeldLimits(passesMemory),
    native,
  };
}

export interface EdgeFrontsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: Pick<EdgeKeys, "table" | "sharedLimits" | "usage">;
  readonly pipeline: Pick<Pipeline, "adopt" | "repeated">;
  readonly answers: Histogram;
  /** Has all that was done so far taken into the books. */
  readonly settle: () => void;
  /** The native decoder's handle. */
  readonly decoder: number;
}

export interface EdgeFrontsOptions {
  /** The public address; port 0 takes any free one. */
  readonly host: string;
  readonly port: number;
  /** Clients of all fronts together, and connections of theirs to the server behind them. */
  readonly connectionsMax: number;
  /** What one address may hold of the clients' connections; it has the same share of the others. */
  readonly connectionsPerAddress: number;
  readonly relaysMax: number;
  /** How long a client may take for a request's head, and for its body. */
  readonly readTimeoutMs: number;
  /** The line by which fronts say what they know of a request that they relay. */
  readonly relayHeader: string;
}

/** The fronts on that ground; started once the HTTP server behind them listens. */
export function buildFronts(
  ground: FrontsGround,
  deps: EdgeFrontsDeps,
  { connectionsMax, relaysMax, ...options }: EdgeFrontsOptions,
): Fronts {
  const { clock, log, keys, pipeline, answers, settle, decoder } = deps;
  const { count, realtime, routes, held, giveWay, native } = ground;
  const { table, sharedLimits } = keys;
  const memory = ground.passesMemory;
  const relaysEach = Math.max(1, Math.floor(relaysMax / count));
  const share = options.connectionsPerAddress / connectionsMax;
  sharedLimits?.join(new SharedCells(memory));
  const shared = sharedLimits === null ? null : new SharedHolds(sharedLimits);
  const passes = createPasses({ clock, keys: table, held, shared, memory });
  const fronts = createFronts(
    {
      clock,
      native,
      giveWay,
      settle,
      books: pipeline,
      passes,
      latency: answers,
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
      routes: ground.routesMemory,
      passes: ground.passesMemory,
      seen: ground.seenMemory,
      connectionsMax: Math.ceil(connectionsMax / count),
      relaysMax: relaysEach,
      relaysPerAddress: Math.max(1, Math.ceil(relaysEach * Math.min(1, share))),
    },
  );
  routes.beforeDrain = fronts.adopt;
  routes.giveWay = fronts.giveWay;
  return fronts;
}
