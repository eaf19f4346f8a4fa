/**
 * The clients' side of an edge: the HTTP server of the main thread, the fronts before it where
 * there are any, and what all of them count together.
 */

import { looksMistyped } from "../accounts/keys/format.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Refusal } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Relays } from "../http/admission.ts";
import { relayHeaderName } from "../http/proxied-request.ts";
import { createHttpServer, type HttpServer } from "../http/server.ts";
import { callReaderOf } from "../http/submit/json-rpc-fast-path.ts";
import { createGate, type Gate, type GateDeps, type KeyOwner } from "../limits/gate.ts";
import type { EngineChoice } from "../native/choose.ts";
import type { Fronts } from "../native-ingress/ingress-threads.ts";
import { DESK_NAMES, REFUSAL_NAMES } from "../native-ingress/thread-counters.ts";
import type { Receipts } from "../receipts/receipts.ts";
import type { RefusalBook } from "../receipts/refusals.ts";
import type { Histogram } from "../runtime/histogram.ts";
import { sumOf } from "../runtime/shared-counters.ts";
import { VERSION } from "../version.ts";
import type { EdgeKeys } from "./keys.ts";
import { buildFronts, type FrontsGround } from "./native-ingress.ts";
import { connectionsWithin } from "./open-file-limit.ts";
import type { Pipeline } from "./pipeline.ts";

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
export type Clients = Pick<HttpServer, "counters" | "refusals" | "receipts" | "unread">;

/**
 * `workers` are the threads that open files beside the fronts.
 *
 * @throws SetupError where fronts are asked for that cannot be
 */
export function buildIngress(config: Config, deps: EdgeIngressDeps, workers: number) {
  const { clock, log, engine, keys, ground, pipeline, receipts, settle } = deps;
  const { answers, refusals, decoderHandle } = deps;
  const { tip, region } = config;
  const { requestDeadlineMs, readTimeoutMs, connections } = config.http;
  const hasFronts = ground !== null && decoderHandle !== null;
  const files = { workers: workers + (ground?.count ?? 0), hasFronts, log };
  const { clients, relays: relaysMax } = connectionsWithin(connections, files);
  const { submit } = pipeline;
  const calls = callReaderOf(engine.native);
  const usage = keys.usage ?? undefined;
  const refused = ({ account, keyId }: KeyOwner, refusal: Refusal): void =>
    refusals.note(account, refusal, keyId);
  const gate = gateOf(keys, clock, ground, refused);
  const told = { latency: answers, refused, usage, calls };
  const headerName = relayHeaderName();
  const relays: Relays = {
    headerName,
    known: (front, token, owner) => fronts?.known(front, token, owner),
  };
  const listen = hasFronts ? BEHIND : config.http.listen;
  const http = createHttpServer(
    { clock, log, gate, submit, receipts, settle, tip, ...told, ...(hasFronts && { relays }) },
    {
      ...listen,
      requestDeadlineMs,
      // A relay that ended may be counted here for a moment while the next one comes.
      connectionsMax: hasFronts ? 2 * relaysMax + RELAYS_SPARE : clients,
      version: VERSION,
      region,
    },
  );
  const fronts = hasFronts
    ? buildFronts(
        ground,
        { clock, log, keys, pipeline, answers, settle, decoder: decoderHandle },
        {
          ...config.http.listen,
          connectionsMax: clients,
          connectionsPerAddress:
            config.http.connectionsPerAddress ?? Math.ceil(clients / ADDRESS_PART),
          relaysMax,
          readTimeoutMs,
          relayHeader: headerName,
        },
      )
    : null;
  return { http, fronts, clients: fronts === null ? http : clientsOf(http, fronts) };
}

/** One address has one part in so many of all connections, where the configuration does not say. */
const ADDRESS_PART = 4;
/** Connections from this host beside those of fronts. */
const RELAYS_SPARE = 64;

/** Where the server listens that has fronts before it. */
const BEHIND = { host: "127.0.0.1", port: 0 };

function gateOf(
  keys: EdgeKeys,
  clock: Clock,
  ground: FrontsGround | null,
  barred: NonNullable<GateDeps["barred"]>,
): Gate {
  const { table, sharedLimits } = keys;
  const held = ground?.held ?? null;
  return createGate({ clock, keys: table, looksMistyped, sharedLimits, held, barred });
}

/** The server's connections are those of fronts' relays, and theirs are the clients'. */
function clientsOf(http: HttpServer, fronts: Fronts): Clients {
  const { figures } = fronts;
  const own = figures.map(({ counters }) => counters);
  const counters = sumOf(DESK_NAMES, [http.counters, ...own]);
  const connections = sumOf(["connections", "connectionsRefused"], own);
  const refusals = sumOf(REFUSAL_NAMES, [
    http.refusals,
    ...figures.map(({ refusals }) => refusals),
  ]);
  const descriptors = Object.getOwnPropertyDescriptors(connections);
  return {
    counters: Object.create(counters, descriptors),
    refusals,
    receipts: http.receipts,
    unread: http.unread,
  };
}
