/**
 * The topology of the control process: builds the components, connects them, starts them bottom-up
 * and stops them top-down.
 *
 *   browser ─▶ web ─▶ routes ─▶ store ─▶ Postgres
 *               │       ├─────▶ edges (receipts, rejections)
 *               │       └─────▶ login ─▶ identity provider
 *               └─ event stream ─▶ store
 *
 * The process has no state that must survive: several may run on one database, and a restart only
 * interrupts the event streams of browsers. Edges serve without it.
 */

import { join } from "node:path";
import type { ControlConfig } from "../config/config.ts";
import { exposureWarnings } from "../config/exposure.ts";
import { controlPortsOf } from "../config/ports.ts";
import { formatListen } from "../config/value-types.ts";
import { type Clock, systemClock, type Timer } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { createAdmin, type Readiness } from "../telemetry/admin.ts";
import { CONTROL_METRICS } from "../telemetry/control-metric-table.ts";
import { createLog } from "../telemetry/log.ts";
import { createMetricsOf } from "../telemetry/metrics.ts";
import { accountRoutes } from "./api/account.ts";
import { adminRoutes } from "./api/admin.ts";
import { keyRoutes } from "./api/keys.ts";
import { sessionRoutes } from "./api/sessions.ts";
import { tokenRoutes } from "./api/tokens.ts";
import { transactionRoutes } from "./api/transactions.ts";
import { usageRoutes } from "./api/usage.ts";
import { controlMetricSources } from "./control-metrics.ts";
import { createEdges } from "./edges.ts";
import { createEventStreams } from "./event-stream.ts";
import { CONTROL_CHECK_MS, CONTROL_PRUNE_MS } from "./limits.ts";
import { createCallback } from "./login/callback.ts";
import { createLogin } from "./login/login.ts";
import { createOidc } from "./login/oidc.ts";
import type { Actor, Store } from "./store/contract.ts";
import { createAttemptLimiter } from "./web/attempt-limiter.ts";
import { createAuthenticator } from "./web/authenticate.ts";
import { CALLBACK_PATH, createWebServer } from "./web/server.ts";

export interface ControlDeps {
  /** Version of the package. */
  readonly version: string;
  readonly store: Store;
  readonly clock?: Clock;
  readonly log?: Log;
  /** Folder of the pages; default: next to this file. */
  readonly pagesFolder?: string;
}

export interface Control {
  /** "host:port" as bound. */
  readonly address: string;
  readonly adminAddress: string;
  /** The result of `/readyz`. */
  readiness(): Readiness;
  /** Makes `/readyz` respond 503; requests are still served. */
  drain(): void;
  /**
   * Ends event streams, responds to open requests, and closes everything except the store; runs
   * once.
   */
  stop(): Promise<void>;
}

/** @throws SetupError when a port is in use; then nothing is left running */
export async function startControl(config: ControlConfig, deps: ControlDeps): Promise<Control> {
  const parts = buildControl(config, deps);
  const { oidc, web, admin, eventStreams, upkeep, log } = parts;
  // A login gives the right. An account that left the list loses it here, in open sessions too.
  const everyOther = { except: config.admins, accountId: null };
  const revoked = await deps.store.accounts.revokeAdmins(everyOther, SYSTEM);
  if (revoked > 0) log.info({ accounts: revoked }, "accounts lost the admin right: not in admins");
  const { port } = await web.start();
  let adminPort: number;
  try {
    adminPort = (await admin.start()).port;
  } catch (error) {
    await web.stop();
    throw error;
  }
  oidc.start();
  await upkeep.start();
  const address = formatListen({ host: config.listen.host, port });
  const adminAddress = formatListen({ host: config.admin.listen.host, port: adminPort });
  for (const warning of exposureWarnings(config.admin.listen)) log.warn({}, warning);
  log.info({ http: address, admin: adminAddress }, "control started");
  let stopped: Promise<void> | null = null;
  async function stop(): Promise<void> {
    parts.drain();
    web.refuse();
    oidc.stop();
    upkeep.stop();
    eventStreams.stop();
    await web.stop();
    await admin.stop();
    log.info({}, "control stopped");
  }
  return {
    address,
    adminAddress,
    readiness: parts.readiness,
    drain: parts.drain,
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

function buildControl(config: ControlConfig, deps: ControlDeps) {
  const { store, version } = deps;
  const clock = deps.clock ?? systemClock;
  const log = deps.log ?? createLog({ level: config.log.level });
  const { recentLoginMs, publicUrl } = config;
  const oidc = createOidc(
    { clock, log },
    {
      ...config.oidc,
      redirectUri: publicUrl + CALLBACK_PATH,
      afterLogoutUri: `${publicUrl}/`,
      freshMs: recentLoginMs,
    },
  );
  const login = createLogin({ store, oidc, log }, { admins: config.admins });
  const edges = createEdges(clock, config.edges);
  const attempts = createAttemptLimiter(clock);
  const eventStreams = createEventStreams({ store, clock, log });
  const upkeep = createUpkeep(store, clock, log);
  const site = { ...config, version };
  const routes = [
    ...accountRoutes({ store, loginAvailable: oidc.available.bind(oidc) }, site),
    ...sessionRoutes({ store, login, endUrl: oidc.endUrl.bind(oidc) }),
    ...keyRoutes(store),
    ...usageRoutes(store),
    ...transactionRoutes({ edges, keys: store.keys }),
    ...tokenRoutes(store),
    ...adminRoutes({ store, edges }),
  ];
  const web = createWebServer(
    {
      ...{ clock, log, routes, attempts },
      authenticator: createAuthenticator({ store, clock }, { recentLoginMs }),
      onReturn: createCallback(login, config),
      onLive: (caller) => eventStreams.open(caller),
    },
    {
      ...config.listen,
      publicUrl,
      fetchOrigins: config.regions.map(({ at }) => new URL(at).origin),
      trustedProxies: config.trustedProxies,
      pagesFolder: deps.pagesFolder ?? join(import.meta.dirname, "pages"),
      version,
    },
  );
  let draining = false;
  const readiness = (): Readiness => readinessOf(draining, upkeep.databaseOk(), oidc.available());
  const metrics = createMetricsOf(
    CONTROL_METRICS,
    controlMetricSources({
      ...{ web, login, oidc, attempts, eventStreams, edges },
      version,
      ready: () => readiness().ok,
      pruned: upkeep.pruned,
    }),
  );
  const ports = Object.values(controlPortsOf(config)).flat();
  const service = { service: "control", ports } as const;
  const admin = createAdmin({ log, service, metrics, readiness }, config.admin.listen);
  const drain = (): void => {
    draining = true;
  };
  return { oidc, web, admin, eventStreams, upkeep, log, readiness, drain };
}

/** An unreachable provider blocks new logins only, so it does not affect readiness. */
function readinessOf(draining: boolean, databaseOk: boolean, known: boolean): Readiness {
  const checks = [
    { name: "draining", ok: !draining, detail: draining ? "stopping" : "no" },
    { name: "database", ok: databaseOk, detail: databaseOk ? "answers" : "does not answer" },
    { name: "provider", ok: true, detail: known ? "discovered" : "not reached, no new logins" },
  ];
  return { ok: checks.every(({ ok }) => ok), checks };
}

/** Background work: checks the database and deletes expired records. */
function createUpkeep(store: Pick<Store, "check" | "prune">, clock: Clock, log: Log) {
  const timers: Timer[] = [];
  let ok = false;
  let pruned = 0;
  let checking = false;
  async function check(): Promise<void> {
    if (checking) return;
    checking = true;
    const before = ok;
    try {
      await store.check();
      ok = true;
    } catch (error) {
      ok = false;
      if (before) log.error({ err: error }, "the database does not answer");
    }
    checking = false;
  }
  async function prune(): Promise<void> {
    try {
      pruned += await store.prune();
    } catch (error) {
      log.warn({ err: error }, "old rows were not deleted; the next attempt is in an hour");
    }
  }
  return {
    databaseOk: () => ok,
    pruned: () => pruned,
    async start(): Promise<void> {
      timers.push(clock.every(CONTROL_CHECK_MS, () => void check()));
      timers.push(clock.every(CONTROL_PRUNE_MS, () => void prune()));
      await check();
    },
    stop(): void {
      for (const timer of timers.splice(0)) timer.cancel();
    },
  };
}

const SYSTEM: Actor = { kind: "system", accountId: null, address: null, userAgent: null };
