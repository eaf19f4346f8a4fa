/** A Postgres database filled with keys, and the two changes whose propagation benches measure. */

import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDatabase, type Database } from "../../src/accounts/database/database.ts";
import { migrate } from "../../src/control/migrations/migrate.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { Log } from "../../src/core/log.ts";
import { startPostgres } from "../../src/sandbox/postgres.ts";

export const silent: Log = { info() {}, warn() {}, error() {} };
const KEYS_AN_ACCOUNT = 10;

export interface BenchDatabase {
  readonly folder: string;
  readonly edgeUrl: string;
  readonly controlUrl: string;
  /** Adds keys with the digests of `textOf(n)` up to `count` keys, ten per account. */
  fill(count: number): Promise<void>;
  /** Returns after the commit. */
  make(text: string): Promise<void>;
  revoke(text: string): Promise<void>;
  /** Fills one account's usage, minutes and hours, by this statement; `minutes` is a row count. */
  fillMonth(
    sql: string,
  ): Promise<{ readonly accountId: string; readonly keys: number; readonly minutes: number }>;
  stop(): Promise<void>;
}

/** The text of the key with this number. */
export const textOf = (number: number): string => `td_bench_${String(number).padStart(33, "0")}`;
export const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();

export async function startDatabase(): Promise<BenchDatabase> {
  const deps = { clock: systemClock, log: silent };
  const folder = mkdtempSync(join(tmpdir(), "touchdown-accounts-"));
  const postgres = await startPostgres(deps, { folder: join(folder, "postgres"), port: null });
  const owner: Database = createDatabase(deps, {
    url: postgres.ownerUrl,
    connections: 2,
    statementMsMax: 300_000,
  });
  await migrate(owner);
  let filled = 0;
  return {
    folder,
    edgeUrl: postgres.edgeUrl,
    controlUrl: postgres.controlUrl,
    async fill(count) {
      await owner.query(FILL, [filled + 1, count, KEYS_AN_ACCOUNT]);
      await owner.query("analyze touchdown.keys");
      await owner.query("analyze touchdown.accounts");
      filled = count;
    },
    async make(text) {
      await owner.query(MAKE, [digestOf(text)]);
    },
    async revoke(text) {
      await owner.query("update touchdown.keys set revoked_at = now() where sha256 = $1", [
        digestOf(text),
      ]);
    },
    async fillMonth(sql) {
      const [account] = await owner.query<{ id: string }>(
        `select account_id as id from touchdown.keys where revoked_at is null
         group by 1 having count(*) >= 3 limit 1`,
      );
      const accountId = account?.id ?? "";
      for (const [table, step] of [
        ["usage_minutes", "1 minute"],
        ["usage_hours", "1 hour"],
      ] as const) {
        await owner.query(sql.replace("into usage", `into touchdown.${table}`), [accountId, step]);
      }
      await owner.query("analyze touchdown.usage_minutes, touchdown.usage_hours");
      const [rows] = await owner.query<{ keys: number; minutes: number }>(
        "select count(distinct key_id) as keys, count(*) as minutes from touchdown.usage_minutes",
      );
      return { accountId, keys: rows?.keys ?? 0, minutes: rows?.minutes ?? 0 };
    },
    async stop() {
      await owner.stop();
      await postgres.stop();
      // When run as root, the database is in a separate folder elsewhere.
      for (const made of [folder, postgres.folder]) rmSync(made, { recursive: true, force: true });
    },
  };
}

const FILL = `
with made as (
  insert into touchdown.accounts (id, name, plan, created_at)
  select gen_random_uuid(), 'account ' || n, 'Beta', now()
  from generate_series($1::int, $2::int, $3::int) n
  returning id, name
)
insert into touchdown.keys (id, account_id, sha256, hint, label, created_at)
select gen_random_uuid(), made.id, sha256(('td_bench_' || lpad(n::text, 33, '0'))::bytea),
  'td_…', '', now()
from made, lateral (select split_part(made.name, ' ', 2)::int as first) f,
  generate_series(first, least(first + $3::int - 1, $2::int)) n`;

const MAKE = `
insert into touchdown.keys (id, account_id, sha256, hint, label, created_at)
select gen_random_uuid(), id, $1, 'td_…', '', now() from touchdown.accounts limit 1`;
