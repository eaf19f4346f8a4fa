/**
 * The topology of an edge: builds the stages, joins them, starts them bottom-up and stops them
 * top-down. Nothing here runs for a single transaction; that order is in pipeline.ts.
 *
 *   keys ─▶ gate ─▶ http ─▶ pipeline ─▶ dispatch ─▶ sender ─▶ leaders
 *                                   │ seen      ▲ plan      │ outcomes
 *   cluster RPC ─▶ chain ─▶ router ─┴───────────┘           ▼
 *                                                        receipts ─▶ metrics, admin
 */

import { availableParallelism } from "node:os";
import type { Config } from "../config/config.ts";
import { formatListen, type ListenAddress } from "../config/kinds.ts";
import { authoritiesFile } from "../config/load.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { decodeBase58 } from "../core/encoding.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { createDecoder, type DecoderOptions } from "../decode/decoder.ts";
import { createNativeDecoder, NATIVE_HERE } from "../decode/native-decoder.ts";
import { createDispatch } from "../decode/workers/dispatch.ts";
import { createWorkerPool } from "../decode/workers/piscina-pool.ts";
import { createSeen, openSeen } from "../dedup/recent-transactions.ts";
import type { HttpServer } from "../http/server.ts";
import { chooseEngine, type EngineChoice } from "../native/choose.ts";
import { signatureTextOf } from "../native/signature-text.ts";
import type { Fronts } from "../native-ingress/ingress-threads.ts";
import { createRefusalBook } from "../receipts/refusals.ts";
import { createHistogram } from "../runtime/histogram.ts";
import type { Identity } from "../send/identity.ts";
import { createAdmin, type Readiness } from "../telemetry/admin.ts";
import { createLog } from "../telemetry/log.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { VERSION } from "../version.ts";
import { askedOf } from "./admin-queries.ts";
import { createPolling } from "./busy-poll.ts";
import { trustAuthorities } from "./extra-ca-certs.ts";
import { buildIngress } from "./ingress.ts";
import { type EdgeKeys, openKeys } from "./keys.ts";
import { buildLeaderSide, busyPollOf, type Step } from "./leaders.ts";
import { DECODE_KEYS_MAX, NATIVE_KEYS_MAX } from "./limits.ts";
import { metricSources } from "./metric-sources.ts";
import { type FrontsGround, frontsGroundOf } from "./native-ingress.ts";
import { type EdgeParts, loadParts } from "./optional-modules.ts";
import { createPipeline } from "./pipeline.ts";
import { createReadiness } from "./readiness.ts";

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
  /** Refuses new work, finishes what is in hand, ends every copy, closes everything; once. */
  stop(): Promise<void>;
  /** Reads the keys file again; a SetupError says what is wrong with it, and the old keys stay. */
  reloadKeys(): void;
  /**
   * Reads the identity's file again and shows leaders that identity from now on, while what is in
   * hand ends as it would have; a SetupError says what is wrong, and the old identity stays.
   */
  reloadIdentity(): void;
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
  if (engine.native !== null) trustAuthorities(engine.native, authoritiesFile(), log);
  const parts = await loadParts(config, engine);
  const stages = await startStages(config, { clock, log, engine, parts });
  log.info({ http: stages.httpAddress(), admin: stages.adminAddress() }, "edge started");
  let stopped: Promise<void> | null = null;
  async function stop(): Promise<void> {
    stages.refuse();
    const failures = await stopAll(stages.bottomUp);
    if (failures.length > 0) throw failures[0];
    log.info({}, "edge stopped");
  }
  return {
    httpAddress: stages.httpAddress(),
    adminAddress: stages.adminAddress(),
    get identity() {
      return stages.identity();
    },
    readiness: stages.readiness,
    drain: stages.drain,
    reloadKeys: stages.reloadKeys,
    reloadIdentity: stages.reloadIdentity,
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

async function startStages(config: Config, base: Base): Promise<Stages> {
  const keys = openKeys(config, base);
  let bottomUp: readonly Step[] = [keys];
  try {
    const stages = buildEdge(config, base, keys);
    bottomUp = stages.bottomUp;
    for (const step of bottomUp) await step.start();
    return stages;
  } catch (error) {
    // Not only what was started: some hold something from the first, as the journal's lock.
    for (const failure of await stopAll(bottomUp)) {
      base.log.error({ err: failure }, "a stage failed");
    }
    throw error;
  }
}

/** Stops them all, the last one first; one that fails keeps no other from being stopped. */
async function stopAll(steps: readonly Step[]): Promise<readonly unknown[]> {
  const failures: unknown[] = [];
  for (const step of steps.toReversed()) {
    try {
      await step.stop();
    } catch (error) {
      failures.push(error);
    }
  }
  return failures;
}

interface Stages {
  readonly log: Log;
  identity(): Identity;
  readonly bottomUp: readonly Step[];
  httpAddress(): string;
  adminAddress(): string;
  readiness(): Readiness;
  drain(): void;
  refuse(): void;
  reloadKeys(): void;
  reloadIdentity(): void;
}

function buildEdge(config: Config, base: Base, keys: EdgeKeys): Stages {
  const { clock, log, engine } = base;
  const { usage, feed } = keys;
  const ground = frontsGroundOf(config, engine, availableParallelism());
  const leaders = buildLeaderSide(config, { ...base, usage, routes: ground?.routes ?? null });
  const { receipts, router, sender, outcomes, chain, holder, landing } = leaders;

  const { decoder, decoderHandle, decoderStep, dispatch } = buildDecode(config, base, ground);
  const seen = ground === null ? createSeen() : openSeen(ground.seenMemory);
  const nameOf = signatureTextOf(engine.native);
  const stages = { clock, seen, dispatch, sender, outcomes, landing, receipts, usage };
  const pipeline = createPipeline({ ...stages, nameOf, sharesSeen: ground !== null });

  const answers = createHistogram();
  const refusals = createRefusalBook(clock);
  const shown = { receipts, answers, refusals, settle: sender.settle };
  const { http, fronts, clients } = buildIngress(
    config,
    { clock, log, engine, keys, ground, pipeline, decoderHandle, ...shown },
    workersOf(config, ground),
  );
  const readiness = createReadiness({ router, sender, chain, feed });
  const metrics = createMetrics(
    metricSources({
      ...leaders,
      build: { version: VERSION, engine: engine.name, region: config.region },
      http: clients,
      fronts,
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
      metrics: settledMetrics(metrics, sender.settle),
      readiness: readiness.check,
      ...viewsOf(leaders),
      ofAccount: askedOf(receipts, refusals, sender.settle),
    },
    config.admin.listen,
  );
  const ports: Ports = { http: 0, admin: 0, behind: 0 };
  return {
    log,
    identity: () => holder.identity,
    bottomUp: [
      keys,
      ...leaders.bottomUp,
      decoderStep,
      dispatch,
      listener(admin, ports, "admin"),
      ...publicSteps(http, fronts, ports, readiness.serve),
      ...(config.host.busyPoll ? [createPolling()] : []),
    ],
    httpAddress: () => addressOf(config.http.listen, ports.http),
    adminAddress: () => addressOf(config.admin.listen, ports.admin),
    readiness: readiness.check,
    drain: readiness.drain,
    refuse() {
      readiness.drain();
      http.drain();
      fronts?.drain();
    },
    reloadKeys: keys.reload,
    reloadIdentity: holder.reload,
  };
}

/** What the admin listener shows of leaders. */
function viewsOf({ router, sender, scorecard }: ReturnType<typeof buildLeaderSide>) {
  return {
    leaders: () => ({ plan: router.plan, peers: sender.peers() }),
    scorecard: () => ({ leaders: scorecard.view() }),
  };
}

/** The same, after all that was done so far was taken into the books. */
function settledMetrics({ contentType, text }: Metrics, settle: () => void): Metrics {
  return {
    contentType,
    text() {
      settle();
      return text();
    },
  };
}

interface Base {
  readonly clock: Clock;
  readonly log: Log;
  readonly engine: EngineChoice;
  readonly parts: EdgeParts;
}

function buildDecode(config: Config, { clock, log, engine }: Base, ground: FrontsGround | null) {
  const options = decoderOptionsOf(config);
  const { decoder, handle, forWorkers, here, close } = decodersOf(options, engine);
  const pollUs = busyPollOf(config.host, engine, availableParallelism());
  const workers = workersOf(config, ground);
  const dispatch = createDispatch(
    { clock, decoder, log, workers: createWorkerPool() },
    { inline: config.decode.inline, workers, decoder: forWorkers, pollUs, ...here },
  );
  // Workers use the native decoder to their end, so it is closed after them.
  const decoderStep: Step = { start() {}, stop: close };
  return { decoder, decoderHandle: handle, decoderStep, dispatch };
}

/** Threads that check transactions; fronts check theirs themselves, and are as many threads. */
function workersOf({ decode }: Config, ground: FrontsGround | null): number {
  const fronts = ground?.count ?? 0;
  const spare = availableParallelism() - 1 - fronts;
  return decode.workers ?? Math.max(fronts === 0 ? 1 : 0, spare);
}

/** The decoder of this thread, and what the workers make theirs of. */
function decodersOf(options: DecoderOptions, { native }: EngineChoice) {
  if (native === null) {
    const decoder = createDecoder(options);
    return { decoder, handle: null, forWorkers: options, here: {}, close() {} };
  }
  const decoder = createNativeDecoder(native, { ...options, keyCacheSize: NATIVE_KEYS_MAX });
  const { handle } = decoder;
  const forWorkers = { nativeHandle: handle };
  return { decoder, handle, forWorkers, here: NATIVE_HERE, close: () => decoder.close() };
}

type Ports = { http: number; admin: number; behind: number };

/** What has the public port: the server, or the fronts before it, which relay to it. */
function publicSteps(http: HttpServer, fronts: Fronts | null, ports: Ports, onBound: () => void) {
  if (fronts === null) return [listener(http, ports, "http", onBound)];
  const front: Listening = {
    start: async () => fronts.start(ports.behind),
    stop: () => fronts.stop(),
  };
  return [listener(http, ports, "behind"), listener(front, ports, "http", onBound)];
}

interface Listening {
  start(): Promise<{ readonly port: number }>;
  stop(): Promise<void>;
}

/** A step that notes which port was bound, and then tells that it is. */
function listener(
  server: Listening,
  ports: Ports,
  name: keyof Ports,
  onBound: () => void = () => {},
): Step {
  return {
    async start() {
      const { port } = await server.start();
      ports[name] = port;
      onBound();
    },
    stop: () => server.stop(),
  };
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

function addressOf(listen: ListenAddress, port: number): string {
  return formatListen({ host: listen.host, port });
}
