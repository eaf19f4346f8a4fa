/**
 * Test databases: one real server per run of the suite, started by the first file that needs it,
 * and a fresh copy of the migrated schema for each call.
 */

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { mkdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, inject } from "vitest";
import { createDatabase, type Database } from "../../src/accounts/database/database.ts";
import { migrate } from "../../src/control/migrations/migrate.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { Log } from "../../src/core/log.ts";
import { startPostgres } from "../../src/sandbox/postgres.ts";

export const silent: Log = { info() {}, warn() {}, error() {} };

export interface TestDatabase {
  /** As the owner of everything, the dashboard, an edge. */
  readonly url: string;
  readonly controlUrl: string;
  readonly edgeUrl: string;
  /** As the dashboard. */
  readonly database: Database;
  /** As the owner. */
  readonly owner: Database;
  /** Another connection pool, closed at the end of the file. */
  open(url: string): Database;
}

interface Urls {
  readonly ownerUrl: string;
  readonly controlUrl: string;
  readonly edgeUrl: string;
}

/** A separate database, until the file's end; `migrated: false` gives an empty one. */
export async function testDatabase(how = { migrated: true }): Promise<TestDatabase> {
  const made = await makeDatabase(how);
  afterAll(() => made.stop());
  return made;
}

/** The same, until it is stopped. */
export async function makeDatabase(
  how = { migrated: true },
): Promise<TestDatabase & { stop(): Promise<void> }> {
  const urls = await server();
  const name = `t_${randomBytes(8).toString("hex")}`;
  const admin = createDatabase(deps, { url: at(urls.ownerUrl, "postgres"), connections: 1 });
  const template = how.migrated ? ` template ${TEMPLATE}` : "";
  await admin.query(`create database ${name}${template}`);
  await admin.stop();
  const opened: Database[] = [];
  const open = (url: string): Database => {
    // Some tests fill large tables, on a busy machine.
    const database = createDatabase(deps, { url, connections: 8, statementMsMax: 120_000 });
    opened.push(database);
    return database;
  };
  const stop = async (): Promise<void> => {
    await Promise.all(opened.splice(0).map((database) => database.stop()));
  };
  const [url, controlUrl, edgeUrl] = [urls.ownerUrl, urls.controlUrl, urls.edgeUrl].map((of) =>
    at(of, name),
  ) as [string, string, string]; // Three in, three out.
  const pools = { database: open(controlUrl), owner: open(url) };
  return { url, controlUrl, edgeUrl, open, ...pools, stop };
}

/** Starts the server unless another file has; the runner ends it (see postgres-run.ts). */
async function server(): Promise<Urls> {
  const folder = inject("postgresFolder");
  const file = join(folder, "urls.json");
  while (!existsSync(file)) {
    const lock = join(folder, "starting");
    try {
      await mkdir(lock);
    } catch {
      // Another file starts it.
      await new Promise((resolve) => setTimeout(resolve, 20));
      continue;
    }
    if (existsSync(file)) break;
    try {
      writeFileSync(`${file}.new`, JSON.stringify(await firstStart(folder)));
      // Another file may read it at any moment, so it must be complete.
      renameSync(`${file}.new`, file);
    } finally {
      await rmdir(lock);
    }
  }
  // Written a few lines above.
  return JSON.parse(readFileSync(file, "utf8")) as Urls;
}

async function firstStart(folder: string): Promise<Urls> {
  // It continues for later files; the runner ends it.
  const how = { folder, port: null, durable: false, outlives: true };
  const postgres = await startPostgres(deps, how);
  writeFileSync(join(folder, "pid"), String(postgres.pid()));
  const { ownerUrl, controlUrl, edgeUrl } = postgres;
  const database = createDatabase(deps, { url: ownerUrl, connections: 1 });
  await migrate(database);
  await database.stop();
  return { ownerUrl, controlUrl, edgeUrl };
}

function at(url: string, database: string): string {
  return url.replace(/[^/]+$/, database);
}

const deps = { clock: systemClock, log: silent };
/** The database that startPostgres creates, migrated and unchanged from then on. */
const TEMPLATE = "touchdown";
