/**
 * The topology of an edge: builds the stages, connects them, starts them bottom-up and stops them
 * top-down. Nothing here runs per transaction; that is in the engine and in tracker.ts.
 *
 *   keys ─▶ access ─▶ http ─▶ engine ─────────────▶ leaders
 *                               ▲ plan   │ events
 *   cluster RPC ─▶ client ─▶ router      ▼
 *                                     tracker ─▶ receipts ─▶ metrics, admin
 */

import { availableParallelism } from "node:os";
import type { ClusterWorker } from "../cluster/cluster-worker.ts";
import type { Config } from "../config/config.ts";
import { edgeName } from "../config/edge-name.ts";
import { exposureWarnings } from "../config/exposure.ts";
import { formatListen, type ListenAddress } from "../config/value-types.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { messageOf, type Rejection, SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Engine } from "../engine/engine.ts";
import { workersOf } from "../engine/validation.ts";
import type { KeyHolder } from "../http/request-tracker.ts";
import type { HttpServer } from "../http/server.ts";
import { chooseEngine, type EngineChoice } from "../native/choose.ts";
import type { IngressThreads } from "../native-ingress/ingress-threads.ts";
import { createRejectionLog } from "../receipts/rejection-log.ts";
import { createHistogram } from "../runtime/histogram.ts";
import { VERSION } from "../runtime/version.ts";
import type { Identity } from "../send/identity.ts";
import { createAdmin, type Readiness } from "../telemetry/admin.ts";
import { createLog } from "../telemetry/log.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { adminQueries } from "./admin-queries.ts";
import { createPolling } from "./busy-poll.ts";
import type { CertificateHolder } from "./certificate.ts";
import { buildClientSide } from "./clients.ts";
import {
  createHandover,
  type EdgeHandover,
  newUpgradeCounts,
  type Predecessor,
  takingOver,
  type UpgradeCounts,
} from "./handover.ts";
import { connectReceipts } from "./handover-receipts.ts";
import { type EdgeKeys, openKeys } from "./keys.ts";
import { buildLeaderSide, type Lifecycle } from "./leaders.ts";
import { metricSources } from "./metric-sources.ts";
import { createNativeIngressContext } from "./native-ingress.ts";
import { loadOptionalModules, type OptionalModules } from "./optional-modules.ts";
import { createQuicReceipts, type QuicReceiptsDeps } from "./quic-receipts.ts";
import { createReadiness } from "./readiness.ts";

export interface EdgeDeps {
  readonly clock?: Clock;
  readonly log?: Log;
  /** A cluster thread of this configuration that loads already; null or absent: none. */
  readonly clusterWorker?: ClusterWorker | null;
  /** The process that this edge replaces; null or absent: none. */
  readonly predecessor?: Predecessor | null;
  /** The content of the admin listener's `/upgrade`. */
  readonly upgrade?: () => object;
  /** Upgrades of this edge; absent: there are none. */
  readonly upgrades?: Readonly<UpgradeCounts>;
}

export interface Edge {
  /** "host:port" as bound. */
  readonly httpAddress: string;
  /** The same for QUIC clients; null where none are served. */
  readonly quicAddress: string | null;
  readonly adminAddress: string;
  /** Threads that accept transactions by themselves; 0: the main thread does. */
  readonly ingressThreads: number;
  /** The identity that leaders see, 32 bytes. */
  readonly identity: Identity;
  /** The response of `/readyz`. */
  readiness(): Readiness;
  /** Turns `/readyz` to 503; work is still accepted. */
  drain(): void;
  /** Closes each connection of a client with its next response. */
  disableKeepAlive(): void;
  /** Rejects new work, finishes pending work, ends every delivery, closes everything; once. */
  stop(): Promise<void>;
  /** What another process needs to replace this edge. */
  readonly handover: EdgeHandover;
  /** Reads the keys file again; a SetupError describes its error, and the old keys stay. */
  reloadKeys(): void;
  /**
   * Reads the identity's file again and presents that identity to leaders from now on, while
   * pending work completes unchanged; a SetupError describes the error, and the old identity stays.
   */
  reloadIdentity(): void;
  /**
   * Reads the certificates again and presents them to connections from now on; does nothing without
   * TLS. A SetupError describes what is wrong, and such a certificate stays as it was.
   */
  reloadCertificates(): void;
}

/**
 * Starts an edge. Resolves when it listens; it is ready once leaders are known and one connection
 * is warm, as `/readyz` says.
 *
 * @throws SetupError when a file is wrong or a port is taken; nothing is left running then
 */
export async function startEdge(config: Config, deps: EdgeDeps = {}): Promise<Edge> {
  const clock = deps.clock ?? systemClock;
  const log = deps.log ?? createLog({ level: config.log.level });
  const engine = chooseEngine(config.send.engine, log);
  const modules = await loadOptionalModules(config, engine);
  const { predecessor = null, clusterWorker = null, upgrade } = deps;
  const { upgrades = newUpgradeCounts() } = deps;
  const base: Base = {
    ...{ clock, log, engine, modules, predecessor, clusterWorker, upgrade, upgrades },
  };
  const { edge, startOrder, reject } = await startStages(config, base);
  const { httpAddress, quicAddress, adminAddress } = edge;
  const quic = quicAddress === null ? {} : { quic: quicAddress };
  for (const warning of exposureWarnings(config.admin.listen)) log.warn({}, warning);
  log.info({ http: httpAddress, ...quic, admin: adminAddress }, "edge started");
  let stopped: Promise<void> | null = null;
  async function stop(): Promise<void> {
    reject();
    const failures = await stopAll(startOrder);
    // Last, with the ends of all transactions.
    await edge.handover.receipts.finish();
    if (failures.length > 0) throw failures[0];
    log.info({}, "edge stopped");
  }
  return Object.assign(edge, {
    stop() {
      stopped ??= stop();
      return stopped;
    },
  });
}

async function startStages(config: Config, base: Base): Promise<Stages> {
  const keys = openKeys(config, base);
  let startOrder: readonly Lifecycle[] = [keys];
  try {
    const stages = buildEdge(config, base, keys);
    startOrder = stages.startOrder;
    for (const lifecycle of startOrder) await lifecycle.start();
    return stages;
  } catch (error) {
    // Not only started ones: some hold a resource from construction on, as the journal's lock.
    for (const failure of await stopAll(startOrder)) {
      base.log.error({ err: failure }, "a stage failed");
    }
    throw error;
  }
}

/** Stops all in reverse order; a failure does not prevent the others from being stopped. */
async function stopAll(lifecycles: readonly Lifecycle[]): Promise<readonly unknown[]> {
  const failures: unknown[] = [];
  for (const lifecycle of lifecycles.toReversed()) {
    try {
      await lifecycle.stop();
    } catch (error) {
      failures.push(error);
    }
  }
  return failures;
}

interface Stages {
  /** Its addresses are known once all stages have started. */
  readonly edge: Omit<Edge, "stop">;
  readonly startOrder: readonly Lifecycle[];
  /** Rejects new work. */
  reject(): void;
}

function buildEdge(config: Config, base: Base, keys: EdgeKeys): Stages {
  const { clock, log, engine, predecessor } = base;
  const { usage, feed } = keys;
  const inherited = predecessor?.listener ?? null;
  const context = createNativeIngressContext(config, engine, availableParallelism());
  const { latencies, rejections, rejected } = requestSinks(clock);
  const planName = (number: number): string => context?.keys.planName(number) ?? "";
  const sinks = { usage, latency: latencies, rejected, planName };
  const count = context?.count ?? 0;
  const leaders = buildLeaderSide(config, { ...base, ...sinks, ingressThreads: count });
  const { receipts, router, cluster, holder, landing } = leaders;
  const { flushEvents } = leaders.engine;

  const engineName = engine.name;
  const readiness = createReadiness({
    ...{ router, sender: leaders.engine.sender, cluster, feed, engine: engineName },
  });
  const clientDeps = { receipts, latencies, rejected, health: readiness, engine: leaders.engine };
  const { http, ingressThreads, clients, certificates } = buildClientSide(
    config,
    { clock, log, keys, context, inherited, ...clientDeps },
    engine.native === null ? workersOf(config) : 0,
  );
  const quicReceipts = quicReceiptsOf(config, ingressThreads, { clock, receipts, flushEvents });
  const metrics = createMetrics(
    metricSources({
      ...leaders,
      build: { version: VERSION, engine: engineName, region: config.region },
      ...{ http: clients, ingressThreads, certificates, quicReceipts },
      ...{ latencies, keys },
      ...{ readiness: readiness.check, upgrades: base.upgrades },
    }),
  );
  const ofAccount = adminQueries(receipts, rejections, flushEvents);
  const admin = buildAdmin(config, base, leaders, { metrics, readiness, ofAccount });
  const exporter = connectReceipts(predecessor, { clock, receipts, flushEvents });
  const ports: Ports = { http: 0, quic: 0, admin: 0, upstream: 0 };
  return {
    startOrder: [
      keys,
      ...leaders.startOrder,
      validationOf(leaders.engine),
      ...takingOver(predecessor, readiness.check, leaders.engine.sender),
      listener(admin, ports, "admin"),
      ...publicListeners(http, ingressThreads, certificates, ports, readiness.serve),
      ...(quicReceipts === null ? [] : [quicReceipts]),
      ...(config.host.busyPoll ? [createPolling()] : []),
    ],
    reject() {
      readiness.drain();
      http.rejectNewWork();
      ingressThreads?.rejectNewWork();
    },
    edge: {
      get httpAddress() {
        return addressOf(config.http.listen, ports.http);
      },
      get quicAddress() {
        return config.quic.listen && addressOf(config.quic.listen, ports.quic);
      },
      get adminAddress() {
        return addressOf(config.admin.listen, ports.admin);
      },
      ingressThreads: context?.count ?? 0,
      get identity() {
        return holder.identity;
      },
      readiness: readiness.check,
      drain() {
        readiness.drain();
        ingressThreads?.announceDrain();
      },
      disableKeepAlive() {
        http.disableKeepAlive();
        ingressThreads?.disableKeepAlive();
      },
      handover: createHandover({
        ...{ predecessor, keys, admin, http, ingressThreads, clients, landing, exporter },
        flushEvents,
        httpPort: () => ports.http,
      }),
      reloadKeys: keys.reload,
      reloadIdentity: holder.reload,
      reloadCertificates: () => reloadAll(certificates),
    },
  };
}

/** Where the answers to requests go, whichever thread gave them. */
function requestSinks(clock: Clock) {
  const rejections = createRejectionLog(clock);
  const rejected = ({ account, keyId }: KeyHolder, rejection: Rejection): void =>
    rejections.record(account, rejection, keyId);
  return { latencies: createHistogram(), rejections, rejected };
}

function buildAdmin(
  config: Config,
  { log, upgrade }: Base,
  leaders: ReturnType<typeof buildLeaderSide>,
  parts: {
    readonly metrics: Metrics;
    readonly readiness: ReturnType<typeof createReadiness>;
    readonly ofAccount: ReturnType<typeof adminQueries>;
  },
) {
  const { metrics, readiness, ofAccount } = parts;
  return createAdmin(
    {
      log,
      service: { service: "edge", region: config.region, name: edgeName(config) },
      metrics: flushedMetrics(metrics, leaders.engine.flushEvents),
      readiness: readiness.check,
      ...viewsOf(leaders),
      ...(upgrade && { upgrade }),
      ofAccount,
    },
    config.admin.listen,
  );
}

/** The admin listener's views of leaders, with all events of the engine, and of the cluster. */
function viewsOf({ router, engine, leaderStats, cluster }: ReturnType<typeof buildLeaderSide>) {
  return {
    leaders() {
      engine.flushEvents();
      return { plan: router.plan, peers: engine.sender.leaders() };
    },
    leaderStats() {
      engine.flushEvents();
      return { leaders: leaderStats.view() };
    },
    cluster: () => ({
      slot: router.currentSlot(),
      slot_ms: router.slotTimeMs,
      consensus: cluster.consensus(),
      confirmation_stalled: cluster.isConfirmationStalled,
    }),
  };
}

/** The same metrics, read after the engine's events. */
function flushedMetrics({ contentType, text }: Metrics, flushEvents: () => void): Metrics {
  return {
    contentType,
    text() {
      flushEvents();
      return text();
    },
  };
}

interface Base {
  readonly clock: Clock;
  readonly log: Log;
  readonly engine: EngineChoice;
  readonly modules: OptionalModules;
  readonly predecessor: Predecessor | null;
  readonly clusterWorker: ClusterWorker | null;
  readonly upgrade: (() => object) | undefined;
  readonly upgrades: Readonly<UpgradeCounts>;
}

function validationOf({ startValidation, stopValidation }: Engine): Lifecycle {
  return { start: startValidation, stop: stopValidation };
}

type Ports = { http: number; quic: number; admin: number; upstream: number };

/** The public listener: the server, or the ingress threads in front of it. */
function publicListeners(
  http: HttpServer,
  ingressThreads: IngressThreads | null,
  certificates: readonly CertificateHolder[],
  ports: Ports,
  onBound: () => void,
) {
  if (ingressThreads === null) return [listener(http, ports, "http", onBound)];
  const publicListener: Listening = {
    async start() {
      const { port, quicPort } = ingressThreads.start(ports.upstream);
      ports.quic = quicPort ?? 0;
      return { port };
    },
    stop: () => ingressThreads.stop(),
  };
  return [
    listener(http, ports, "upstream"),
    listener(publicListener, ports, "http", onBound),
    ...certificates,
  ];
}

/** Reads each, also after one that is wrong. @throws SetupError with what is wrong of each */
function reloadAll(certificates: readonly CertificateHolder[]): void {
  const faults: string[] = [];
  for (const { reload } of certificates) {
    try {
      reload();
    } catch (error) {
      faults.push(messageOf(error));
    }
  }
  if (faults.length > 0) throw new SetupError(faults.join("; "));
}

/** What passes receipts on to QUIC clients, where some are served. */
function quicReceiptsOf(
  { quic }: Config,
  ingressThreads: IngressThreads | null,
  deps: Omit<QuicReceiptsDeps, "ingressThreads">,
) {
  if (quic.listen === null || ingressThreads === null) return null;
  return createQuicReceipts({ ...deps, ingressThreads });
}

interface Listening {
  start(): Promise<{ readonly port: number }>;
  stop(): Promise<void>;
}

/** A lifecycle step that records the bound port and then calls `onBound`. */
function listener(
  server: Listening,
  ports: Ports,
  name: keyof Ports,
  onBound: () => void = () => {},
): Lifecycle {
  return {
    async start() {
      const { port } = await server.start();
      ports[name] = port;
      onBound();
    },
    stop: () => server.stop(),
  };
}

function addressOf(listen: ListenAddress, port: number): string {
  return formatListen({ host: listen.host, port });
}
