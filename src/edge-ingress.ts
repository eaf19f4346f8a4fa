/**
 * The clients' side of an edge: the HTTP server of the main thread, the fronts that it listens for
 * where there are any, and what all of them count together.
 */

import { looksMistyped } from "./accounts/key-format.ts";
import type { Config } from "./config/config.ts";
import type { Clock } from "./core/clock.ts";
import type { Histogram } from "./core/histogram.ts";
import type { Log } from "./core/log.ts";
import { sumOf } from "./core/shared-figures.ts";
import { connectionsWithin } from "./edge-files.ts";
import { buildFronts, type FrontsGround } from "./edge-fronts.ts";
import type { EdgeKeys } from "./edge-keys.ts";
import { DESK_NAMES, REFUSAL_NAMES } from "./front/figures.ts";
import type { Fronts } from "./front/fronts.ts";
import { callReaderOf } from "./ingress/call-reader.ts";
import type { DeskDeps } from "./ingress/desk.ts";
import { createGate, type Gate } from "./ingress/gate.ts";
import { createHttpServer, type HttpServer } from "./ingress/http.ts";
import type { EngineChoice } from "./native/choose.ts";
import type { Receipts } from "./observe/receipts.ts";
import type { RefusalBook } from "./observe/refusals.ts";
import type { Pipeline } from "./pipeline.ts";
import { VERSION } from "./version.ts";

export interface EdgeIngressDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly engine: EngineChoice;
  readonly keys: EdgeKeys;
  /** What fronts stand on; null without any. */
  readonly ground: FrontsGround | null;
  readonly pipeline: Pipeline;
  readonly receipts: Receipts;
  readonly answers: Histogram;
  readonly refusals: RefusalBook;
  /** Has all that was done so far taken into the books. */
  readonly settle: () => void;
  /** Of the native decoder; null without one. */
  readonly decoderHandle: number | null;
}

/** What is counted of clients, over all threads. */
export type Clients = Pick<HttpServer, "counters" | "refusals" | "receipts">;

/**
 * `workers` are the threads that open files beside the fronts.
 *
 * @throws SetupError where fronts are asked for that cannot be
 */
export function buildIngress(config: Config, deps: EdgeIngressDeps, workers: number) {
  const { clock, log, engine, keys, ground, pipeline, receipts, settle } = deps;
  const { answers, refusals, decoderHandle } = deps;
  const { tip, region } = config;
  const { host, port } = config.http.listen;
  const { requestDeadlineMs, connections } = config.http;
  const threads = workers + (ground?.count ?? 0);
  const connectionsMax = connectionsWithin(connections, { workers: threads, log });
  const { submit } = pipeline;
  const gate = gateOf(keys, clock, ground);
  const calls = callReaderOf(engine.native);
  const usage = keys.usage ?? undefined;
  const refused: DeskDeps["refused"] = ({ account, keyId }, refusal) =>
    refusals.note(account, refusal, keyId);
  const told = { latency: answers, refused, usage, calls };
  const http = createHttpServer(
    { clock, log, gate, submit, receipts, settle, tip, ...told },
    { host, port, requestDeadlineMs, connectionsMax, version: VERSION, region },
  );
  if (ground === null || decoderHandle === null) return { http, fronts: null, clients: http };
  const fronts = buildFronts(
    ground,
    { clock, log, keys, pipeline, http, answers, refusals, settle, decoder: decoderHandle },
    { requestDeadlineMs, connectionsMax },
  );
  return { http, fronts, clients: clientsOf(http, fronts) };
}

function gateOf(keys: EdgeKeys, clock: Clock, ground: FrontsGround | null): Gate {
  const { table, sharedLimits } = keys;
  const held = ground?.held ?? null;
  return createGate({ clock, keys: table, looksMistyped, sharedLimits, held });
}

/** A request that is moved is open at both ends, and counted at one. */
function clientsOf(http: HttpServer, fronts: Fronts): Clients {
  const { figures } = fronts;
  const counters = sumOf(DESK_NAMES, [http.counters, ...figures.map(({ counters }) => counters)]);
  const refusals = sumOf(REFUSAL_NAMES, [
    http.refusals,
    ...figures.map(({ refusals }) => refusals),
  ]);
  const open = {
    get requestsOpen() {
      return counters.requestsOpen - fronts.moved;
    },
  };
  const descriptors = Object.getOwnPropertyDescriptors(open);
  return {
    counters: Object.create(counters, descriptors),
    refusals,
    receipts: http.receipts,
  };
}
