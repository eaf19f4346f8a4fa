/**
 * The processes of the service as an operator runs them, each of which can be killed and restarted:
 * Postgres, control and an edge, with a simulated cluster for the edge.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDatabase, type Database } from "../../src/accounts/database/database.ts";
import { openStore } from "../../src/control/store/open.ts";
import { systemClock } from "../../src/core/clock.ts";
import { type Postgres, startPostgres } from "../../src/sandbox/postgres.ts";
import { MAIN, type Network, startNetwork } from "../support/edge-process.ts";
import { ENGINE, SILENT } from "../support/flow.ts";
import { insertPlan } from "../support/plans.ts";
import { freePort } from "../support/ports.ts";
import { until } from "../support/wait.ts";

/** A process that is started, killed and restarted with the same file and port. */
export interface Managed {
  readonly name: string;
  readonly isUp: boolean;
  /** Resolves when it listens. */
  start(): Promise<void>;
  /** SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>;
  output(): string;
}

export interface Service {
  readonly network: Network;
  readonly edge: Managed;
  readonly control: Managed;
  readonly edgeUrl: string;
  readonly controlUrl: string;
  /** A management token of the account that makes keys. */
  readonly token: string;
  killPostgres(): Promise<void>;
  stopPostgres(): Promise<void>;
  startPostgres(): Promise<void>;
  /** Resolves when the database has ended every connection of an edge. */
  edgeForgotten(): Promise<void>;
  /** Requests that the database has counted; waits while it is down. */
  countedRequests(): Promise<number>;
  stop(): Promise<void>;
}

const deps = { clock: systemClock, log: SILENT };

export async function startService(): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-chaos-"));
  const network = await startNetwork();
  const data = { folder: join(folder, "postgres"), port: null };
  let postgres: Postgres = await startPostgres(deps, data);
  const vaultFile = join(folder, "vault.json");
  const token = await prepare(postgres, vaultFile);
  const [edgePort, controlPort] = [await freePort(), await freePort()];
  const edgeUrl = `http://127.0.0.1:${edgePort}`;
  const controlUrl = `http://127.0.0.1:${controlPort}`;
  const files = { edge: join(folder, "edge.toml"), control: join(folder, "control.toml") };
  writeFileSync(files.edge, edgeToml(network, postgres.edgeUrl, edgePort));
  writeFileSync(files.control, controlToml(postgres.controlUrl, controlUrl, controlPort));
  const edge = managed("edge", files.edge, /HTTP on /);
  const control = managed("control", files.control, /dashboard on /);
  const owner = createDatabase(deps, { url: postgres.ownerUrl, connections: 1 });
  return {
    ...{ network, edge, control, edgeUrl, controlUrl, token },
    async killPostgres() {
      process.kill(postgres.pid(), "SIGKILL");
      const { restarts } = postgres.counters;
      await until("Postgres to be started again", () => postgres.counters.restarts > restarts);
      await retried(() => owner.query("select 1"));
    },
    stopPostgres: () => postgres.stop(),
    async startPostgres() {
      postgres = await startPostgres(deps, data);
    },
    edgeForgotten: () => retried(() => expectForgotten(owner)),
    countedRequests: () => retried(() => countedRequests(owner)),
    async stop() {
      await Promise.all([edge.kill(), control.kill()]);
      await owner.stop();
      await postgres.stop();
      await network.stop();
      for (const left of [folder, postgres.folder]) rmSync(left, { recursive: true, force: true });
    },
  };
}

/** The schema, a plan with a limit that never applies, an account on it and its token. */
async function prepare(postgres: Postgres, vaultFile: string): Promise<string> {
  const { store, database, stop } = await openStore(deps, {
    databaseUrl: postgres.controlUrl,
    ownerUrl: postgres.ownerUrl,
    vaultFile,
    environment: "live",
    sessionIdleMs: 3_600_000,
    sessionMsMax: 3_600_000,
  });
  const actor = { kind: "system", accountId: null, address: null, userAgent: null } as const;
  const rights = { keys_max: 100_000 };
  const plan = { name: "Wide", ratePerSecond: 100_000, burst: 100_000, shared: false, rights };
  await insertPlan(database, plan);
  const made = await store.accounts.create("chaos", "Wide", actor);
  if (made.kind === "refused") throw new Error(made.detail);
  const options = { label: "chaos", scope: "write", expiresAtMs: null } as const;
  const issued = await store.apiTokens.create(made.value.id, options, actor);
  if (issued.kind === "refused") throw new Error(issued.detail);
  await stop();
  return issued.value.token;
}

async function expectForgotten(owner: Database): Promise<void> {
  const left = await owner.query("select from pg_stat_activity where usename = 'edge'");
  if (left.length > 0) throw new Error(`${left.length} connections of an edge`);
}

async function countedRequests(owner: Database): Promise<number> {
  const [row] = await owner.query<{ minutes: number; hours: number }>(
    `select (select coalesce(sum(requests), 0)::bigint from touchdown.usage_minutes) as minutes,
       (select coalesce(sum(requests), 0)::bigint from touchdown.usage_hours) as hours`,
  );
  if (row === undefined || row.minutes !== row.hours) {
    throw new Error(`minutes and hours differ: ${JSON.stringify(row)}`);
  }
  return row.minutes;
}

/** The downtime between two kills is part of the test. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.after(ms, () => resolve()));
}

async function retried<T>(act: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await act();
    } catch (error) {
      if (attempt >= 600) throw error;
      await pause(100);
    }
  }
}

function managed(name: "edge" | "control", file: string, listening: RegExp): Managed {
  let child: ChildProcess | null = null;
  let output = "";
  let gone: Promise<void> = Promise.resolve();
  let printed = "";
  return {
    name,
    get isUp() {
      return child !== null;
    },
    output: () => output,
    async start() {
      const fresh = spawn(process.execPath, [MAIN, name, "--config", file], {
        stdio: ["ignore", "pipe", "pipe"],
      });
      child = fresh;
      printed = "";
      const keep = (data: Buffer): void => {
        printed += data.toString();
        output = (output + data.toString()).slice(-20_000);
      };
      fresh.stdout.on("data", keep);
      fresh.stderr.on("data", keep);
      gone = new Promise((resolve) => {
        fresh.once("close", () => {
          if (child === fresh) child = null;
          resolve();
        });
      });
      await until(`${name} to listen`, () => listening.test(printed) || child !== fresh);
      if (child !== fresh) throw new Error(`${name} ended: ${printed}`);
    },
    async kill() {
      child?.kill("SIGKILL");
      await gone;
    },
  };
}

function edgeToml(network: Network, databaseUrl: string, port: number): string {
  return `
region = "chaos"
name = "edge"
[http]
listen = "127.0.0.1:${port}"
[admin]
listen = "127.0.0.1:0"
[cluster]
rpc_url = "${network.rpcUrl}"
ws_url = "${network.wsUrl}"
[tip]
accounts = ["${network.tipAccount}"]
[accounts]
database_url = "${databaseUrl}"
usage_period = "1s"
[send]
bind = "127.0.0.1:0"
engine = "${ENGINE}"
`;
}

function controlToml(databaseUrl: string, url: string, port: number): string {
  return `
[control]
listen = "127.0.0.1:${port}"
public_url = "${url}"
oidc_issuer = "http://127.0.0.1:1"
oidc_client_id = "nobody"
vault_file = "vault.json"
[admin]
listen = "127.0.0.1:0"
[accounts]
database_url = "${databaseUrl}"
`;
}
