/**
 * An edge's keys: from a file, or from the accounts database with usage written back and, if a
 * store for it is configured, global limits, which apply to all edges together.
 */

import { randomUUID } from "node:crypto";
import { createGlobalLimits, type GlobalLimits } from "../accounts/global-limits/sync.ts";
import { createKeyFeed, type KeyFeed } from "../accounts/keys/feed.ts";
import { type KeysFile, keyRowsOf, loadKeysFile } from "../accounts/keys/keys-file.ts";
import { openLendableJournal } from "../accounts/keys/lendable-journal.ts";
import { createKeyTable, type KeyTable } from "../accounts/keys/table.ts";
import { createUsage, type Usage } from "../accounts/usage/usage.ts";
import type { Config } from "../config/config.ts";
import { edgeName } from "../config/edge-name.ts";
import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { type OptionalModules, requireModule } from "./optional-modules.ts";

export interface EdgeKeys {
  readonly table: KeyTable;
  /** Reads of the keys file; reads of the database are counted by its feed. */
  readonly loads: { ok: number; failed: number };
  /** null for keys from a file, as are all fields below. */
  readonly feed: KeyFeed | null;
  readonly usage: Usage | null;
  readonly globalLimits: GlobalLimits | null;
  /** Reads the keys again. @throws SetupError when the file is wrong; the old keys stay */
  reload(): void;
  /** Leaves the journal to another process, which replaces this one. */
  lendJournal(): void;
  /** That process has ended. @throws SetupError while it has the journal */
  takeBackJournal(): void;
  start(): void;
  stop(): Promise<void>;
}

export interface EdgeKeysDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly modules: OptionalModules;
}

/**
 * @throws SetupError when the keys file is wrong, or another edge has the journal; an unreachable
 *   database is no error
 */
export function openKeys(config: Config, deps: EdgeKeysDeps): EdgeKeys {
  const { keysFile, databaseUrl } = config.accounts;
  if (keysFile !== null) return keysOfFile(keysFile, deps.log);
  if (databaseUrl !== null) return keysOfDatabase(config, databaseUrl, deps);
  throw new SetupError("accounts: neither keys_file nor database_url is given");
}

function keysOfFile(path: string, log: Log): EdgeKeys {
  const table = createKeyTable(keyRowsOf(loadKeys(path)));
  const loads = { ok: 1, failed: 0 };
  return {
    table,
    loads,
    feed: null,
    usage: null,
    globalLimits: null,
    reload() {
      try {
        table.replace(keyRowsOf(loadKeys(path)));
      } catch (error) {
        loads.failed += 1;
        throw error;
      }
      loads.ok += 1;
      log.info({ keys: table.counters.keys }, "keys read again");
    },
    lendJournal() {},
    takeBackJournal() {},
    start() {},
    stop: () => Promise.resolve(),
  };
}

/**
 * The keys of a file. An empty one is most likely being written, not a request to lock out all
 * clients. @throws SetupError
 */
export function loadKeys(path: string): KeysFile["keys"] {
  const { plans, keys } = loadKeysFile(path);
  if (plans.size > 0) return keys;
  throw new SetupError(`${path}: the file holds no plan and no key, at least a plan is needed`);
}

function keysOfDatabase(config: Config, url: string, deps: EdgeKeysDeps): EdgeKeys {
  const { clock, log, modules } = deps;
  const { accounts, limits, region } = config;
  const edge = edgeName(config);
  const table = createKeyTable();
  const database = requireModule(modules.createDatabase)(
    { clock, log },
    { url, connections: CONNECTIONS, applicationName: `touchdown edge ${edge}`.slice(0, 63) },
  );
  const journal = openLendableJournal(accounts.journal);
  const feed = createKeyFeed({ clock, log, database, table, journal });
  const usage = createUsage(
    { clock, log, database },
    { edge: edge.slice(0, 64), region, periodMs: accounts.usagePeriodMs },
  );
  const globalLimits =
    limits.redisUrl === null
      ? null
      : createGlobalLimits(
          {
            clock,
            log,
            store: requireModule(modules.createLimitStore)({ clock, log }, limits.redisUrl),
          },
          // Two edges of one name would count as one, and each use the share of both.
          { edge: `${region} ${edge} ${randomUUID()}`, initialEdgeCount: limits.edges },
        );
  return {
    table,
    loads: { ok: 0, failed: 0 },
    feed,
    usage,
    globalLimits,
    reload: () => feed.refresh(),
    lendJournal: () => journal.lend(),
    takeBackJournal() {
      journal.takeBack();
      feed.refresh();
    },
    start() {
      feed.start();
      usage.start();
      globalLimits?.start();
    },
    async stop() {
      await globalLimits?.stop();
      await usage.stop();
      await feed.stop();
      await database.stop();
    },
  };
}

/** One reads keys, one writes usage; `listen` has its own. */
const CONNECTIONS = 2;
