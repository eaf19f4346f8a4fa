/**
 * The client side of an edge: the HTTP server of the main thread, the ingress threads in front of
 * it if there are any, and their combined counters.
 */

import { looksMistyped } from "../accounts/keys/format.ts";
import type { Config } from "../config/config.ts";
import { formatListen } from "../config/value-types.ts";
import type { Clock } from "../core/clock.ts";
import { REJECTION_NAMES } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Engine } from "../engine/engine.ts";
import { createForwardedHeaderName } from "../http/forwarded-header.ts";
import type { RejectionSinks } from "../http/request-tracker.ts";
import type { Health } from "../http/routes.ts";
import { createHttpServer, type HttpServer } from "../http/server.ts";
import { keylessResults } from "../http/submit/json-rpc.ts";
import {
  type AccessControl,
  type AccessControlDeps,
  createAccessControl,
} from "../limits/access-control.ts";
import type { NativeQuicListenOptions } from "../native/contract.ts";
import type {
  CertificateSource,
  IngressThreads,
  TlsProtocol,
} from "../native-ingress/ingress-threads.ts";
import { HTTP_COUNTER_NAMES } from "../native-ingress/thread-counters.ts";
import type { Receipts } from "../receipts/receipts.ts";
import type { Histogram } from "../runtime/histogram.ts";
import { sumOf } from "../runtime/shared-counters.ts";
import { VERSION } from "../runtime/version.ts";
import {
  type CertificateHolder,
  certificateFilesOf,
  createCertificateHolder,
} from "./certificate.ts";
import { type PredecessorListener, requireSameServer } from "./inherited-listener.ts";
import type { EdgeKeys } from "./keys.ts";
import { buildNativeIngress, type NativeIngressContext } from "./native-ingress.ts";
import { connectionsWithin } from "./open-file-limit.ts";

export interface ClientSideDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: EdgeKeys;
  /** Of the ingress threads; null without any. */
  readonly context: NativeIngressContext | null;
  readonly engine: Pick<Engine, "submit" | "submitCall" | "flushEvents" | "ingress">;
  readonly receipts: Receipts;
  readonly latencies: Histogram;
  /** Called for each rejection of a known account. */
  readonly rejected: NonNullable<RejectionSinks["rejected"]>;
  /** What `/readyz` and `getHealth` answer. */
  readonly health: Health;
  /** Where the edge listens that this one replaces; null without one. */
  readonly inherited: PredecessorListener | null;
}

/** Client counters over all threads. */
export type Clients = Pick<HttpServer, "counters" | "rejections" | "receipts" | "unread">;

/**
 * `workers` is the number of threads that open files besides the ingress threads.
 *
 * @throws SetupError where ingress threads are requested but not possible
 */
export function buildClientSide(config: Config, deps: ClientSideDeps, workers: number) {
  const { clock, log, engine, keys, context, receipts } = deps;
  const { latencies, rejected, health, inherited } = deps;
  const { submit, submitCall, flushEvents, ingress } = engine;
  const { tip, region } = config;
  const { requestDeadlineMs, idleTimeoutMs, connections } = config.http;
  const hasIngressThreads = context !== null && ingress !== null;
  const files = { workers: workers + (context?.count ?? 0), hasIngressThreads, log };
  const { clients, upstreamConnections: upstreamConnectionsMax } = connectionsWithin(
    connections,
    files,
  );
  const usage = keys.usage ?? undefined;
  const access = accessControlOf(keys, clock, context, (principal, rejection) =>
    rejected(principal, rejection, 0),
  );
  const sinks = { latency: latencies, rejected, usage };
  const forwardedHeader = createForwardedHeaderName();
  const { publicListen, serverListen } = listenersOf(config, inherited, hasIngressThreads);
  const http = createHttpServer(
    {
      clock,
      log,
      access,
      submit,
      submitCall,
      receipts,
      flushEvents,
      tip,
      health,
      ...sinks,
      ...(hasIngressThreads && { forwardedHeader }),
    },
    {
      ...serverListen,
      requestDeadlineMs,
      ...(hasIngressThreads && { idleTimeoutMs }),
      // A proxy connection that ended may still be counted here when the next one opens.
      connectionsMax: hasIngressThreads ? 2 * upstreamConnectionsMax + SPARE_CONNECTIONS : clients,
      version: VERSION,
      region,
    },
  );
  const certificates = certificatesOf(config, deps, (next) => ingressThreads?.present(next));
  const ingressThreads = hasIngressThreads
    ? buildNativeIngress(
        context,
        { clock, log, keys, flushEvents, engine: ingress },
        {
          ...publicListen,
          socket: inherited?.socket ?? null,
          ...clientBounds(config.http, clients),
          upstreamConnectionsMax,
          quic: quicListenOf(config, inherited),
          forwardedHeader,
          keylessResults: keylessResults({ tipAccounts: tip.accounts, version: VERSION }),
          certificates,
        },
      )
    : null;
  return {
    http,
    ingressThreads,
    certificates,
    clients: ingressThreads === null ? http : clientsOf(http, ingressThreads),
  };
}

/**
 * The certificates of an edge with TLS, which needs ingress threads. `touchdown/1` clients are
 * presented that of HTTP clients where there is none for them alone. @throws SetupError
 */
function certificatesOf(
  config: Config,
  { clock, log, context }: ClientSideDeps,
  present: (source: CertificateSource) => void,
): readonly CertificateHolder[] {
  if (context === null) return [];
  const deps = { clock, log, native: context.native, present };
  const { http, quic } = certificateFilesOf(config);
  const isForBoth = config.quic.listen !== null && quic === null;
  const ofHttp: readonly TlsProtocol[] = isForBoth ? ["http", "quic"] : ["http"];
  return [
    ...(http === null ? [] : [createCertificateHolder(deps, http, ofHttp)]),
    ...(quic === null ? [] : [createCertificateHolder(deps, quic, ["quic"])]),
  ];
}

/** The bounds of clients of ingress threads, of which at most `connections` may be connected. */
function clientBounds(
  { connectionsPerAddress, readTimeoutMs, idleTimeoutMs }: Config["http"],
  connections: number,
) {
  return {
    connectionsMax: connections,
    connectionsPerAddress: connectionsPerAddress ?? perAddressOf(connections),
    readTimeoutMs,
    idleTimeoutMs,
  };
}

function quicListenOf(
  { quic, http }: Config,
  inherited: PredecessorListener | null,
): NativeQuicListenOptions | null {
  if (quic.listen === null) return null;
  return {
    ...quic.listen,
    predecessorPlaces: [...(inherited?.quicPlaces ?? [])],
    processNumber: inherited?.processNumber ?? 0,
    connectionsMax: quic.connections,
    connectionsPerAddress: quic.connectionsPerAddress ?? perAddressOf(quic.connections),
    connectionsPerAccount: quic.connectionsPerAccount,
    streamTimeoutMs: http.readTimeoutMs,
    drainTo: quic.drainTo === null ? "" : formatListen(quic.drainTo),
  };
}

/** How many of so many connections one address may hold by default. */
function perAddressOf(connections: number): number {
  return Math.ceil(connections / ADDRESS_PART);
}

/** By default, one address may hold this fraction of all connections. */
const ADDRESS_PART = 4;
/** Connections from this host besides those of ingress threads. */
const SPARE_CONNECTIONS = 64;

/**
 * Where clients connect, and where the main thread's server listens.
 *
 * @throws SetupError where the process before has another server
 */
function listenersOf(
  { http }: Config,
  inherited: PredecessorListener | null,
  hasIngressThreads: boolean,
) {
  if (inherited !== null) requireSameServer(inherited, hasIngressThreads);
  const publicListen = inherited === null ? http.listen : { ...http.listen, port: inherited.port };
  const sharing = inherited === null ? ("later" as const) : ("now" as const);
  const serverListen = hasIngressThreads ? UPSTREAM_LISTEN : { ...publicListen, sharing };
  return { publicListen, serverListen };
}

/** Where the upstream server of ingress threads listens. */
const UPSTREAM_LISTEN = { host: "127.0.0.1", port: 0 };

function accessControlOf(
  keys: EdgeKeys,
  clock: Clock,
  context: NativeIngressContext | null,
  onPolicyViolation: NonNullable<AccessControlDeps["onPolicyViolation"]>,
): AccessControl {
  const { table, globalLimits, feed } = keys;
  const sharedLimits = context?.keys ?? null;
  return createAccessControl({
    clock,
    keys: table,
    looksMistyped,
    globalLimits,
    sharedLimits,
    onPolicyViolation,
    hasKeys: () => feed?.hasKeys ?? true,
  });
}

/** The server's connections are those of the proxies; the ingress threads' are the clients'. */
function clientsOf(http: HttpServer, ingressThreads: IngressThreads): Clients {
  const { stats } = ingressThreads;
  const own = stats.map(({ counters }) => counters);
  const counters = sumOf(HTTP_COUNTER_NAMES, [http.counters, ...own]);
  const connections = sumOf(["connections", "connectionsRejected"], own);
  const rejections = sumOf(REJECTION_NAMES, [
    http.rejections,
    ...stats.map(({ rejections }) => rejections),
  ]);
  const descriptors = Object.getOwnPropertyDescriptors(connections);
  return {
    counters: Object.create(counters, descriptors),
    rejections,
    receipts: http.receipts,
    unread: http.unread,
  };
}
