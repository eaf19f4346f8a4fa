/**
 * An embedded Postgres for the sandbox and for a single host: the same engine as in production, in
 * a persistent folder.
 *
 * It listens on loopback with passwords created at the first start. It runs in a session of its
 * own, so that Ctrl-C at a terminal reaches only this process, which ends it last. If it dies, it
 * is restarted; if this process is killed, the guard ends it, and if the guard is killed too, the
 * next start does. Committed data survives all of that.
 *
 * Decision: docs/decisions/0042-real-postgres-everywhere.md
 */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { createDatabase, type Database } from "../accounts/database/database.ts";
import { type Clock, holdProcess, sleep, until } from "../core/clock.ts";
import { messageOf, SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import {
  POSTGRES_CONNECTIONS_MAX,
  POSTGRES_LOG_BYTES_MAX,
  POSTGRES_POLL_MS,
  POSTGRES_RESTART_MS_MAX,
  POSTGRES_START_ATTEMPTS_MAX,
  POSTGRES_START_MS_MAX,
  POSTGRES_STOP_MS_MAX,
} from "./limits.ts";
import { freePort } from "./ports.ts";
import {
  type Binaries,
  chooseUser,
  findBinaries,
  type RunAs,
  reachableFolder,
} from "./postgres-binaries.ts";
import {
  claim,
  endLeftover,
  type Folder,
  give,
  openFolder,
  release,
  serverStatus,
} from "./postgres-folder.ts";
import { type Guard, guardServer } from "./postgres-guard.ts";

export interface PostgresDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export interface PostgresOptions {
  /** Kept; created if missing. As root it may move to where the Postgres user can reach it. */
  readonly folder: string;
  /** null: a free one at the first start, and the same from then on. */
  readonly port: number | null;
  /** Whether a commit is on the disk before its response; false only for tests. */
  readonly durable?: boolean;
  /** Whether the server continues when this process ends without stopping it; only for tests. */
  readonly outlives?: boolean;
}

export interface Postgres {
  /** For migrations: the owner of all objects. */
  readonly ownerUrl: string;
  /** For the dashboard. */
  readonly controlUrl: string;
  /** For edges: read hashes and limits, write usage. */
  readonly edgeUrl: string;
  readonly folder: string;
  readonly port: number;
  /** The process number of the current server. */
  pid(): number;
  readonly counters: {
    /** How often the server died and was restarted. */
    restarts: number;
  };
  stop(): Promise<void>;
}

interface Plan {
  readonly binaries: Binaries;
  readonly folder: Folder;
  readonly runAs: RunAs;
  readonly durable: boolean;
  readonly outlives: boolean;
}

/** Starts the server and creates the database; a `SetupError` gives the reason of a failure. */
export async function startPostgres(
  { clock, log }: PostgresDeps,
  options: PostgresOptions,
): Promise<Postgres> {
  const alive = holdProcess();
  try {
    const runAs = await chooseUser();
    const binaries = await findBinaries(runAs);
    const folder = openFolder(reachableFolder(options.folder, runAs));
    claim(folder);
    const { durable = true, outlives = false } = options;
    const plan: Plan = { binaries, folder, runAs, durable, outlives };
    await endLeftover(folder, clock);
    if (!existsSync(folder.data)) await initialise(plan);
    const supervisor = supervise(plan, { clock, log });
    const port = await supervisor.start(options.port);
    const postgres = describe(folder, port, supervisor);
    await prepare({ clock, log }, postgres, folder);
    return postgres;
  } finally {
    alive.cancel();
  }
}

async function initialise({ binaries, folder, runAs, durable }: Plan): Promise<void> {
  const fresh = `${folder.data}.new`;
  const passwordFile = join(folder.path, "initdb.password");
  await rm(fresh, { recursive: true, force: true });
  writeFileSync(passwordFile, `${folder.facts().ownerPassword}\n`, { mode: 0o600 });
  try {
    give(passwordFile, runAs);
    give(folder.path, runAs);
    await run(
      binaries.initdb,
      [
        `--pgdata=${fresh}`,
        `--username=${OWNER}`,
        `--pwfile=${passwordFile}`,
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
        ...(durable ? [] : ["--no-sync"]),
      ],
      { ...(runAs ?? {}), cwd: folder.path },
    );
    await rename(fresh, folder.data);
  } catch (cause) {
    const why = messageOf(cause);
    throw new SetupError(`Postgres cannot be set up in ${folder.path}: ${why}`, { cause });
  } finally {
    await rm(passwordFile, { force: true });
  }
}

interface Supervisor {
  start(port: number | null): Promise<number>;
  stop(): Promise<void>;
  pid(): number;
  readonly counters: { restarts: number };
}

function supervise(plan: Plan, { clock, log }: PostgresDeps): Supervisor {
  const { folder } = plan;
  const counters = { restarts: 0 };
  let child: ChildProcess | null = null;
  let guard: Guard | null = null;
  let stopping = false;
  let restarting: Promise<void> = Promise.resolve();

  /** Resolves when the server accepts connections; false if it ended before. */
  async function launch(port: number): Promise<boolean> {
    const fresh = spawnServer(plan, port);
    child = fresh;
    const { pid } = fresh;
    guard?.dismiss();
    const watched = pid !== undefined && !plan.outlives;
    guard = watched ? guardServer({ pid, data: folder.data }, plan.runAs) : null;
    let ended = pid === undefined;
    fresh.once("error", () => {
      ended = true;
    });
    fresh.once("exit", () => {
      ended = true;
    });
    const ready = (): boolean => pid !== undefined && serverStatus(folder, pid) === "ready";
    const wait = { timeoutMs: POSTGRES_START_MS_MAX, periodMs: POSTGRES_POLL_MS };
    await until(clock, wait, () => ended || ready());
    if (ended || !ready()) {
      fresh.kill("SIGQUIT");
      return false;
    }
    fresh.once("exit", (code, signal) => {
      if (stopping) return;
      log.error({ code, signal }, "the embedded Postgres died and is started again");
      restarting = restart(port);
    });
    return true;
  }

  /** Null once the server accepts connections, else the place of its error messages. */
  async function relaunch(port: number): Promise<object | null> {
    await endLeftover(folder, clock);
    return (await launch(port)) ? null : { log: folder.log };
  }

  /** Never rejects. */
  async function restart(port: number): Promise<void> {
    for (let waitMs = 10; !stopping; waitMs = Math.min(waitMs * 2, POSTGRES_RESTART_MS_MAX)) {
      // A temporary folder may have been deleted: that must not end this process.
      const failed = await relaunch(port).catch((error: unknown) => ({ err: error }));
      if (failed === null) {
        counters.restarts += 1;
        return;
      }
      log.error(failed, "the embedded Postgres does not start");
      await sleep(clock, waitMs);
    }
  }

  return {
    counters,
    pid: () => child?.pid ?? 0,
    async start(wished) {
      for (let attempt = 0; attempt < POSTGRES_START_ATTEMPTS_MAX; attempt += 1) {
        const port = wished ?? (attempt === 0 ? folder.facts().port : null) ?? (await freePort());
        if (await launch(port)) {
          folder.keepPort(port);
          return port;
        }
      }
      throw new SetupError(`Postgres does not start in ${folder.path}: ${lastWords(folder)}`);
    },
    async stop() {
      stopping = true;
      await restarting;
      if (child !== null) await end(child, clock);
      guard?.dismiss();
    },
  };
}

async function end(server: ChildProcess, clock: Clock): Promise<void> {
  const gone = (): boolean => server.exitCode !== null || server.signalCode !== null;
  for (const signal of ["SIGINT", "SIGQUIT"] as const) {
    if (gone()) return;
    server.kill(signal);
    const wait = { timeoutMs: POSTGRES_STOP_MS_MAX, periodMs: POSTGRES_POLL_MS };
    await until(clock, wait, gone);
  }
}

function spawnServer({ binaries, folder, runAs, durable }: Plan, port: number): ChildProcess {
  const large = existsSync(folder.log) && statSync(folder.log).size > POSTGRES_LOG_BYTES_MAX;
  const out = openSync(folder.log, large ? "w" : "a", 0o600);
  try {
    const settings = {
      listen_addresses: "127.0.0.1",
      port,
      unix_socket_directories: "",
      max_connections: POSTGRES_CONNECTIONS_MAX,
      timezone: "UTC",
      log_min_messages: "warning",
      ...(durable ? {} : { fsync: "off", synchronous_commit: "off", full_page_writes: "off" }),
    };
    const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    return spawn(binaries.postgres, ["-D", folder.data, ...args], {
      ...(runAs ?? {}),
      cwd: folder.data,
      detached: true,
      stdio: ["ignore", out, out],
    });
  } finally {
    closeSync(out);
  }
}

function describe(folder: Folder, port: number, supervisor: Supervisor): Postgres {
  const facts = folder.facts();
  const url = (user: string, password: string): string =>
    `postgres://${user}:${password}@127.0.0.1:${port}/${DATABASE}`;
  return {
    ownerUrl: url(OWNER, facts.ownerPassword),
    controlUrl: url("control", facts.controlPassword),
    edgeUrl: url("edge", facts.edgePassword),
    folder: folder.path,
    port,
    pid: supervisor.pid,
    counters: supervisor.counters,
    async stop() {
      const alive = holdProcess();
      try {
        await supervisor.stop();
        await release(folder);
      } finally {
        alive.cancel();
      }
    },
  };
}

/** Creates or updates the database and the logins of dashboard and edges. */
async function prepare(deps: PostgresDeps, postgres: Postgres, folder: Folder): Promise<void> {
  const { controlPassword, edgePassword } = folder.facts();
  const url = postgres.ownerUrl.replace(/[^/]+$/, "postgres");
  const database = createDatabase(deps, { url, connections: 1 });
  try {
    const [there] = await database.query("select from pg_database where datname = $1", [DATABASE]);
    if (there === undefined) await database.query(`create database ${DATABASE}`);
    await login(database, "control", "touchdown_control", controlPassword);
    await login(database, "edge", "touchdown_edge", edgePassword);
  } catch (error) {
    await postgres.stop();
    throw error;
  } finally {
    await database.stop();
  }
}

/** The passwords are generated base64url, so they need no escaping. */
async function login(
  database: Database,
  user: string,
  role: string,
  password: string,
): Promise<void> {
  for (const name of [role, user]) {
    const [there] = await database.query("select from pg_roles where rolname = $1", [name]);
    if (there === undefined) await database.query(`create role ${name} nologin`);
  }
  await database.query(`alter role ${user} login password '${password}'`);
  await database.query(`grant ${role} to ${user}`);
}

function lastWords(folder: Folder): string {
  if (!existsSync(folder.log)) return "it said nothing";
  return readFileSync(folder.log, "utf8").trimEnd().split("\n").slice(-LOG_LINES).join("; ");
}

const run = promisify(execFile);
const OWNER = "owner";
const DATABASE = "touchdown";
const LOG_LINES = 4;
