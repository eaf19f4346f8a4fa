/**
 * Migrates the database to the schema of this version, at start.
 *
 * All migrations run in order in one transaction under a lock, so that any number of processes may
 * start concurrently and a failure leaves no partial change. Applied migrations are stored with
 * their checksums: one that has changed since, or that this version does not know, is rejected,
 * because in both cases the schema is not the one that the code expects.
 */

import { createHash } from "node:crypto";
import type { Database, Queryable } from "../../accounts/database/database.ts";
import { DatabaseError } from "../../accounts/database/database-error.ts";
import { SetupError } from "../../core/errors.ts";
import { MIGRATION_MS_MAX } from "../limits.ts";
import { ACCOUNTS_SQL } from "./0001-accounts.ts";
import { LOGINS_SQL } from "./0002-logins.ts";
import { USAGE_SQL } from "./0003-usage.ts";
import { EDGES_SQL } from "./0004-edges.ts";
import { MARKS_SQL } from "./0005-marks.ts";
import { EDGE_COLUMNS_SQL } from "./0006-edge-columns.ts";
import { SUCCESSORS_SQL } from "./0007-successors.ts";
import { LAST_USED_SQL } from "./0008-last-used.ts";
import { PUBLIC_KEYS_SQL } from "./0009-public-keys.ts";
import { CLIENT_KEYS_SQL } from "./0010-client-keys.ts";
import { CLIENT_KEYS_IN_USE_SQL } from "./0011-client-keys-in-use.ts";

export interface Migration {
  /** Consecutive, starting at 1. */
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

/** Every migration of this version, in order. A released migration is never changed. */
export const MIGRATIONS: readonly Migration[] = [
  { number: 1, name: "accounts", sql: ACCOUNTS_SQL },
  { number: 2, name: "logins", sql: LOGINS_SQL },
  { number: 3, name: "usage", sql: USAGE_SQL },
  { number: 4, name: "edges", sql: EDGES_SQL },
  { number: 5, name: "marks", sql: MARKS_SQL },
  { number: 6, name: "edge-columns", sql: EDGE_COLUMNS_SQL },
  { number: 7, name: "successors", sql: SUCCESSORS_SQL },
  { number: 8, name: "last-used", sql: LAST_USED_SQL },
  { number: 9, name: "public-keys", sql: PUBLIC_KEYS_SQL },
  { number: 10, name: "client-keys", sql: CLIENT_KEYS_SQL },
  { number: 11, name: "client-keys-in-use", sql: CLIENT_KEYS_IN_USE_SQL },
];

/**
 * Applies the missing migrations and returns their names. Throws `SetupError` if the database
 * cannot be used, `DatabaseError` if it is unreachable.
 */
export async function migrate(
  database: Database,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<readonly string[]> {
  try {
    if ((await missing(database, migrations)).length === 0) return [];
    return await database.transaction((tx) => apply(tx, migrations), {
      statementMsMax: MIGRATION_MS_MAX,
    });
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.kind !== "refused") throw error;
    const needs =
      "the accounts database must be created or migrated by its owner, " +
      "whose login goes into control.owner_url";
    throw new SetupError(`${needs}: ${error.message}`, { cause: error });
  }
}

async function apply(tx: Queryable, migrations: readonly Migration[]): Promise<readonly string[]> {
  await tx.query("select pg_advisory_xact_lock($1)", [LOCK]);
  const [there] = await tx.query("select from pg_namespace where nspname = 'touchdown'");
  if (there === undefined) await tx.query("create schema touchdown");
  await tx.query(TABLE);
  const applied: string[] = [];
  for (const migration of await missing(tx, migrations)) {
    try {
      await tx.query(migration.sql);
    } catch (error) {
      if (!(error instanceof DatabaseError) && !(error instanceof Error)) throw error;
      throw new SetupError(`migration ${titleOf(migration)} failed: ${error.message}`, {
        cause: error,
      });
    }
    await tx.query(
      "insert into touchdown.migrations (number, name, checksum) values ($1, $2, $3)",
      [migration.number, migration.name, checksumOf(migration)],
    );
    applied.push(titleOf(migration));
  }
  return applied;
}

/** The migrations to apply; throws `SetupError` when the applied ones do not match. */
async function missing(
  tx: Queryable,
  migrations: readonly Migration[],
): Promise<readonly Migration[]> {
  const [table] = await tx.query<{ found: boolean }>(
    "select to_regclass('touchdown.migrations') is not null as found",
  );
  if (table?.found !== true) return migrations;
  const rows = await tx.query<{ number: number; name: string; checksum: string }>(
    "select number, name, checksum from touchdown.migrations order by number",
  );
  for (const row of rows) {
    const ours = migrations.find(({ number }) => number === row.number);
    if (ours === undefined) {
      throw new SetupError(
        `the accounts database has migration ${titleOf(row)}, which this version does not know ` +
          `(it ends with ${migrations.length}): run the newer version`,
      );
    }
    if (checksumOf(ours) !== row.checksum) {
      throw new SetupError(
        `migration ${titleOf(row)} of the accounts database is not the one of this version: ` +
          "it was changed after it was applied",
      );
    }
  }
  const applied = new Set(rows.map(({ number }) => number));
  return migrations.filter(({ number }) => !applied.has(number));
}

function checksumOf({ number, name, sql }: Migration): string {
  return createHash("sha256").update(`${number}\n${name}\n${sql}`).digest("hex");
}

function titleOf({ number, name }: { readonly number: number; readonly name: string }): string {
  return `${String(number).padStart(4, "0")}-${name}`;
}

/** An advisory lock id that no other program uses; it spells "tdmg". */
const LOCK = 0x74_64_6d_67;

const TABLE = `create table if not exists touchdown.migrations (
  number integer primary key,
  name text not null,
  checksum text not null,
  applied_at timestamptz not null default now()
)`;
