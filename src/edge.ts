/**
 * The topology of an edge: builds the stages, joins them, starts them bottom-up and stops them
 * top-down. Nothing here runs for a single transaction; that order is in pipeline.ts.
 *
 *   keys file ─▶ gate ─▶ http ─▶ pipeline ─▶ dispatch ─▶ sender ─▶ leaders
 *                                   │ seen      ▲ plan      │ outcomes
 *   cluster RPC ─▶ chain ─▶ router ─┴───────────┘           ▼
 *                                                        receipts ─▶ metrics, admin
 */

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { looksMistyped } from "./accounts/key-format.ts";
import { createKeyTable, type KeyTable } from "./accounts/key-table.ts";
import { loadKeysFile } from "./accounts/keys-file.ts";
import { createChain } from "./chain/chain.ts";
import type { Config } from "./config/config.ts";
import { formatListen, type ListenAddress } from "./config/kinds.ts";
import { type Clock, systemClock } from "./core/clock.ts";
import { decodeBase58 } from "./core/encoding.ts";
import { SetupError } from "./core/errors.ts";
import { createHistogram } from "./core/histogram.ts";
import { DECODE_KEYS_MAX } from "./core/limits.ts";
import type { Log } from "./core/log.ts";
import { createDecoder, type DecoderOptions } from "./decode/decoder.ts";
import { createDispatch } from "./decode/dispatch.ts";
import { createWorkerPool } from "./decode/pool.ts";
import { metricSources } from "./edge-metrics.ts";
import { createReadiness } from "./edge-readiness.ts";
import { createGate } from "./ingress/gate.ts";
import { createHttpServer } from "./ingress/http.ts";
import { createSeen } from "./ingress/seen.ts";
import { createAdmin, type Readiness } from "./observe/admin.ts";
import { createLog } from "./observe/log.ts";
import { createMetrics } from "./observe/metrics.ts";
import { createReceipts } from "./observe/receipts.ts";
import { createPipeline } from "./pipeline.ts";
import { createRouter } from "./route/router.ts";
import { freshIdentity, type Identity, identityOfJson } from "./send/identity.ts";
import { createSender } from "./send/sender.ts";
import { createQuicTransport, QUIC_TRANSPORT_DEFAULTS } from "./send/transport-quic.ts";
import { VERSION } from "./version.ts";

export interface EdgeDeps {
  readonly clock?: Clock;
  readonly log?: Log;
}

export interface Edge {
  /** "host:port" as bound. */
  readonly httpAddress: string;
  readonly adminAddress: string;
  /** The identity that leaders see, 32 bytes. */
  readonly identity: Identity;
  /** What `/readyz` answers. */
  readiness(): Readiness;
  /** Turns `/readyz` to 503; work is still taken. */
  drain(): void;
  /** Refuses new work, finishes what is in hand, ends every copy, closes everything. */
  stop(): Promise<void>;
  /** Reads the keys file again; a SetupError says what is wrong with it, and the old keys stay. */
  reloadKeys(): void;
}

/**
 * Starts an edge. Resolves when it listens; it is ready once leaders are known and one connection
 * is warm, as `/readyz` says.
 *
 * @throws SetupError when a file is wrong or a port is taken; nothing is left running then
 */
export async function startEdge(config: Config, deps: EdgeDeps = {}): Promise<Edge> {
  const stages = buildEdge(config, deps);
  const started: (() => unknown)[] = [];
  try {
    for (const stage of stages.bottomUp) {
      await stage.start();
      started.push(() => stage.stop());
    }
  } catch (error) {
    for (const stop of started.toReversed()) await stop();
    throw error;
  }
  const { log } = stages;
  log.info({ http: stages.httpAddress(), admin: stages.adminAddress() }, "edge started");
  return {
    httpAddress: stages.httpAddress(),
    adminAddress: stages.adminAddress(),
    identity: stages.identity,
    readiness: stages.readiness,
    drain: stages.drain,
    reloadKeys: stages.reloadKeys,
    async stop() {
      stages.refuse();
      for (const stage of stages.bottomUp.toReversed()) await stage.stop();
      log.info({}, "edge stopped");
    },
  };
}

/** One step of starting and its reverse. */
interface Step {
  start(): unknown;
  stop(): unknown;
}

interface Stages {
  readonly log: Log;
  readonly identity: Identity;
  readonly bottomUp: readonly Step[];
  httpAddress(): string;
  adminAddress(): string;
  readiness(): Readiness;
  drain(): void;
  refuse(): void;
  reloadKeys(): void;
}

function buildEdge(config: Config, deps: EdgeDeps): Stages {
  const clock = deps.clock ?? systemClock;
  const log = deps.log ?? createLog({ level: config.log.level });
  const keys = openKeys(config);
  const identity = readIdentity(config);
  const leaders = buildLeaderSide(config, { clock, log, identity });
  const { receipts, router, chain, sender } = leaders;

  const decoderOptions = decoderOptionsOf(config);
  const decoder = createDecoder(decoderOptions);
  const workerCount = config.decode.workers ?? Math.max(1, availableParallelism() - 1);
  const dispatch = createDispatch(
    { clock, decoder, log, workers: createWorkerPool() },
    { inline: config.decode.inline, workers: workerCount, decoder: decoderOptions },
  );
  const seen = createSeen();
  const pipeline = createPipeline({ clock, seen, dispatch, sender, receipts });

  const gate = createGate({ keys: keys.table, looksMistyped });
  const answers = createHistogram();
  const { tip, region } = config;
  const http = createHttpServer(
    { clock, log, gate, submit: pipeline.submit, receipts, tip, latency: answers },
    {
      host: config.http.listen.host,
      port: config.http.listen.port,
      requestDeadlineMs: config.http.requestDeadlineMs,
      connectionsMax: config.http.connections,
      version: VERSION,
      region,
    },
  );
  const readiness = createReadiness({ router, sender });
  const build = { version: VERSION, engine: "portable", region };
  const metrics = createMetrics(
    metricSources({
      ...leaders,
      build,
      http,
      answers,
      seen,
      keys,
      pipeline,
      dispatch,
      inlineVerifier: decoder.counters,
      readiness: readiness.check,
    }),
  );
  const admin = createAdmin(
    {
      log,
      metrics,
      readiness: readiness.check,
      leaders: () => ({ plan: router.plan, peers: sender.peers() }),
    },
    config.admin.listen,
  );

  const ports: Ports = { http: 0, admin: 0 };
  return {
    log,
    identity,
    bottomUp: [
      receipts,
      sender,
      router,
      chain,
      dispatch,
      listener(admin, ports, "admin"),
      listener(http, ports, "http"),
    ],
    httpAddress: () => addressOf(config.http.listen, ports.http),
    adminAddress: () => addressOf(config.admin.listen, ports.admin),
    readiness: readiness.check,
    drain: readiness.drain,
    refuse() {
      readiness.drain();
      http.drain();
    },
    reloadKeys: keys.reload,
  };
}

type Ports = { http: number; admin: number };

/** A step that notes which port was bound. */
function listener(
  server: { start(): Promise<{ readonly port: number }>; stop(): Promise<void> },
  ports: Ports,
  name: keyof Ports,
): Step {
  return {
    async start() {
      const { port } = await server.start();
      ports[name] = port;
    },
    stop: () => server.stop(),
  };
}

/** Everything between the cluster and the wire. */
function buildLeaderSide(
  config: Config,
  base: { readonly clock: Clock; readonly log: Log; readonly identity: Identity },
) {
  const { clock, log, identity } = base;
  const receipts = createReceipts(
    { clock },
    { keepMs: config.receipts.keepMs, entriesMax: config.receipts.countMax },
  );
  const transport = createQuicTransport(
    { clock, identity },
    { ...QUIC_TRANSPORT_DEFAULTS, ...bindOf(config.send.bind) },
  );
  const sender = createSender(
    { clock, transport, log, onOutcome: (outcome) => receipts.record(outcome) },
    {
      queuePerPeer: config.send.queuePerPeer,
      copyTtlMs: config.send.copyTtlMs,
      connectionsMax: config.send.connections,
    },
  );
  const router = createRouter(
    { clock, onPlan: (plan) => sender.usePlan(plan ?? NO_PLAN) },
    { leaders: config.send.leaders, warmWindows: config.send.warmWindows },
  );
  const chain = createChain({ clock, log, router }, config.cluster);
  return { receipts, sender, router, chain };
}

/** Without a current slot nobody is sent to. */
const NO_PLAN = { slot: 0, send: [], warm: [] } as const;

interface Keys {
  readonly table: KeyTable;
  readonly loads: { ok: number; failed: number };
  reload(): void;
}

function openKeys(config: Config): Keys {
  const path = config.accounts.keysFile;
  if (path === null) throw new SetupError("accounts.keys_file is needed by this version");
  const table = createKeyTable(loadKeysFile(path).keys);
  const loads = { ok: 1, failed: 0 };
  return {
    table,
    loads,
    reload() {
      loads.failed += 1;
      const { keys } = loadKeysFile(path);
      table.replace(keys);
      loads.failed -= 1;
      loads.ok += 1;
    },
  };
}

function readIdentity(config: Config): Identity {
  const path = config.identity.keypair;
  if (path === null) return freshIdentity();
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new SetupError(`identity.keypair: ${path} cannot be read`, { cause });
  }
  return identityOfJson(text);
}

function decoderOptionsOf(config: Config): DecoderOptions {
  return {
    tipAccounts: config.tip.accounts.map(keyBytes),
    lamportsMin: config.tip.lamportsMin,
    verify: config.decode.verify,
    keyCacheSize: DECODE_KEYS_MAX,
  };
}

function keyBytes(account: string): Uint8Array {
  const bytes = decodeBase58(account, 32);
  if (bytes?.length !== 32) throw new SetupError(`tip.accounts: ${account} is no account`);
  return bytes;
}

/** An address of one family leaves the other to its default. */
function bindOf({ host }: ListenAddress): { bindIpv4: string } | { bindIpv6: string } {
  return host.includes(":") ? { bindIpv6: host } : { bindIpv4: host };
}

function addressOf(listen: ListenAddress, port: number): string {
  return formatListen({ host: listen.host, port });
}
