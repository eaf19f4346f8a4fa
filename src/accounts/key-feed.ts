/**
 * Keeps an edge's key table as the accounts database has it: a whole set at first, then each change
 * as the database tells of it, and everything that was missed when the connection comes back.
 *
 * Known keys are served whatever happens to the database: the table stays as it is, and the key
 * journal brings it back after a restart. Changes are numbered; the number that was reached is kept
 * with the keys, so nothing is applied twice or left out. No request ever waits for any of this.
 */

import { KEY_CHANGES_MAX, KEY_FETCH_ROWS, KEY_SYNC_RETRY_MS } from "../core/account-limits.ts";
import type { Clock, Timer } from "../core/clock.ts";
import { NS_PER_MS } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { Database, Listener, Querier } from "./database.ts";
import type { Plan, StoredKey } from "./key.ts";
import type { KeyChanges, KeyJournal } from "./key-journal.ts";
import { type EdgeKeyRow, keyOfRow, type PlanRow, planOfRow } from "./key-records.ts";
import type { KeyTable } from "./key-table.ts";

export interface KeyFeedDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly database: Database;
  readonly table: KeyTable;
  readonly journal: KeyJournal;
}

export interface KeyFeedCounters {
  /** The number of the last change that is in the table; 0: none was ever read. */
  revision: number;
  /** Times that everything was read. */
  snapshots: number;
  /** Changes applied one by one. */
  changes: number;
  /** Attempts to read from the database that failed. */
  failures: number;
  /** 1 while changes are heard, else 0. */
  connected: number;
}

export interface KeyFeed {
  /** Takes the keys from disk, at once; then follows the database for as long as it runs. */
  start(): void;
  /** Looks for changes now, told of or not. */
  refresh(): void;
  stop(): Promise<void>;
  /** Whether any keys were ever read, from the database or from disk. */
  readonly hasKeys: boolean;
  /** Since the table was last known to be as the database has it, in ms; null: never. */
  ageMs(): number | null;
  readonly counters: Readonly<KeyFeedCounters>;
}

export function createKeyFeed(deps: KeyFeedDeps): KeyFeed {
  const { clock, log, database, table, journal } = deps;
  const counters: KeyFeedCounters = {
    revision: 0,
    snapshots: 0,
    changes: 0,
    failures: 0,
    connected: 0,
  };
  let revision: number | null = null;
  let currentNs: number | null = null;
  let listener: Listener | null = null;
  let retry: Timer | null = null;
  /** The reading that is under way, and whether another one must follow. */
  let syncing: Promise<void> | null = null;
  let again = false;
  let stopped = false;

  function reached(next: number): void {
    revision = next;
    counters.revision = next;
  }

  function pause(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  async function readAll(): Promise<void> {
    const rebuild = table.begin();
    const next = await database.transaction((tx) => fetchAll(tx, rebuild.put), {
      snapshot: true,
      statementMsMax: SNAPSHOT_MS_MAX,
    });
    rebuild.finish();
    reached(next);
    counters.snapshots += 1;
    await rewrite();
  }

  function append(changes: KeyChanges): void {
    try {
      journal.append(changes);
    } catch (error) {
      log.error({ err: error }, "a change of keys cannot be kept on disk; it holds all the same");
    }
  }

  async function rewrite(): Promise<void> {
    if (revision === null) return;
    try {
      await journal.rewrite(table, revision, pause);
    } catch (error) {
      log.error(
        { err: error },
        "the keys cannot be kept on disk; a restart would need the database",
      );
    }
  }

  async function readChanges(since: number): Promise<void> {
    const changes = await database.transaction((tx) => fetchChanges(tx, since, table), {
      snapshot: true,
    });
    if (changes === null) {
      await readAll();
      return;
    }
    if (changes.revision > since) {
      // On disk first: a key that was revoked here must not come back with a restart.
      append(changes);
      for (const plan of changes.plans) table.setPlan(plan);
      for (const sha256 of changes.removals) table.remove(sha256);
      for (const row of changes.puts) table.put(row);
      counters.changes += changes.plans.length + changes.removals.length + changes.puts.length;
      reached(changes.revision);
    }
    if (journal.isLong) await rewrite();
  }

  async function readOnce(): Promise<void> {
    try {
      const startNs = clock.nowNs();
      if (revision === null) await readAll();
      else await readChanges(revision);
      currentNs = startNs;
    } catch (error) {
      counters.failures += 1;
      const known = table.counters.keys;
      log.warn({ err: error, keys: known }, "the accounts database was not read; known keys stay");
      if (!stopped) retry ??= clock.after(KEY_SYNC_RETRY_MS, sync);
    }
  }

  function sync(): void {
    retry?.cancel();
    retry = null;
    if (stopped) return;
    again = true;
    syncing ??= drain().finally(() => {
      syncing = null;
    });
  }

  async function drain(): Promise<void> {
    while (again && !stopped) {
      again = false;
      await readOnce();
    }
  }

  return {
    counters,
    get hasKeys() {
      return revision !== null;
    },
    ageMs() {
      return currentNs === null ? null : (clock.nowNs() - currentNs) / NS_PER_MS;
    },
    start() {
      try {
        const kept = journal.load(table);
        if (kept !== null) reached(kept);
        log.info({ keys: table.counters.keys, revision: kept }, "keys taken from disk");
      } catch (error) {
        log.error({ err: error }, "the keys on disk cannot be read");
      }
      listener = database.listen(KEYS_CHANNEL, {
        notice: sync,
        connected() {
          counters.connected = 1;
          sync();
        },
        lost() {
          counters.connected = 0;
        },
      });
    },
    refresh: sync,
    async stop() {
      stopped = true;
      retry?.cancel();
      await listener?.stop();
      await syncing;
      journal.close();
    },
  };
}

const KEYS_CHANNEL = "touchdown_keys";
/** A million keys over a slow line. */
const SNAPSHOT_MS_MAX = 60_000;

const KEY_COLUMNS =
  "replace(key_id::text, '-', '') as id, sha256, account_id as account, plan, " +
  "expires_at as expires, cidrs, rate_per_second as rate, burst";

/** Hands every key to `put`; answers the revision that they are of. */
async function fetchAll(tx: Querier, put: (row: StoredKey) => boolean): Promise<number> {
  const [at] = await tx.query<{ revision: number }>("select revision from touchdown.edge_revision");
  const plans = new Map<string, Plan>();
  for (const row of await tx.query<PlanRow>(PLANS_SQL)) plans.set(row.name, planOfRow(row));
  await tx.query(
    `declare all_keys no scroll cursor for select ${KEY_COLUMNS} from touchdown.edge_keys`,
  );
  for (;;) {
    const rows = await tx.query<EdgeKeyRow>(`fetch ${KEY_FETCH_ROWS} from all_keys`);
    for (const row of rows) {
      if (!put(keyOfRow(row, plans))) throw new RangeError("more keys than an edge can hold");
    }
    if (rows.length < KEY_FETCH_ROWS) return at?.revision ?? 0;
  }
}

const PLANS_SQL = "select name, rate_per_second as rate, burst, shared from touchdown.edge_plans";

interface ChangeRow {
  readonly revision: number;
  readonly kind: string;
  readonly id: string;
  readonly sha256: Buffer | null;
}

/** What changed since a revision; null where everything has to be read instead. */
async function fetchChanges(
  tx: Querier,
  since: number,
  table: KeyTable,
): Promise<KeyChanges | null> {
  const [at] = await tx.query<{ revision: number; oldest: number }>(
    "select revision, oldest from touchdown.edge_revision",
  );
  // A lower number is another database, or one that was restored.
  if (at === undefined || at.revision < since || at.oldest > since + 1) return null;
  const changes = await tx.query<ChangeRow>(
    "select revision, kind, id, sha256 from touchdown.edge_changes where revision > $1 limit $2",
    [since, KEY_CHANGES_MAX + 1],
  );
  if (changes.length > KEY_CHANGES_MAX) return null;
  if (changes.some(({ kind, sha256 }) => !KINDS.has(kind) || (kind === "key" && !sha256))) {
    return null;
  }
  const idsOf = (kind: string) => changes.filter((it) => it.kind === kind).map(({ id }) => id);
  const [keyIds, accounts, planNames] = [idsOf("key"), idsOf("account"), idsOf("plan")];
  const planRows = await tx.query<PlanRow>(PLANS_SQL);
  const plans = new Map(planRows.map((row) => [row.name, planOfRow(row)]));
  const rows = await tx.query<EdgeKeyRow>(
    `select ${KEY_COLUMNS} from touchdown.edge_keys
     where key_id = any($1::uuid[]) or account_id = any($2::uuid[])`,
    [keyIds, accounts],
  );
  const puts = rows.map((row) => keyOfRow(row, plans));
  const good = new Set(puts.map(({ sha256 }) => sha256.toString("hex")));
  const touched = changes.flatMap(({ sha256 }) => (sha256 === null ? [] : [sha256]));
  const candidates = [...touched, ...accounts.flatMap((account) => table.digestsOf(account))];
  return {
    revision: at.revision,
    plans: planNames.flatMap((name) => plans.get(name) ?? []),
    puts,
    removals: candidates.filter((sha256) => !good.has(sha256.toString("hex"))),
  };
}

const KINDS: ReadonlySet<string> = new Set(["key", "account", "plan"]);
