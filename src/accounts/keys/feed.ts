/**
 * Synchronizes an edge's key table with the accounts database: a full read first, then each change
 * that the database notifies, and all missed changes after a reconnect.
 *
 * An unavailable database does not affect known keys: the table stays, and the key journal restores
 * it after a restart. Changes are numbered, and the last number is stored with the keys, so no
 * change is applied twice or skipped. No request ever waits for this.
 */

import type { Clock, Timer } from "../../core/clock.ts";
import { NS_PER_MS } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { Database, Listener } from "../database/database.ts";
import {
  KEY_EXPIRED_KEPT_MS,
  KEY_JOURNAL_RETRY_MS,
  KEY_POLL_MS,
  KEY_SLICE_ROWS,
  KEY_SYNC_RETRY_MS,
} from "../limits.ts";
import { fetchAll, fetchChanges, fetchEnded } from "./fetch.ts";
import type { KeyJournal } from "./journal.ts";
import type { KeyChanges } from "./journal-line.ts";
import type { LentKey, StoredKey } from "./key.ts";
import { isSameRevision, type Revision } from "./revision.ts";
import type { KeyTable, Rebuild } from "./table.ts";

export interface KeyFeedDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly database: Database;
  readonly table: KeyTable;
  readonly journal: KeyJournal;
}

export interface KeyFeedCounters {
  /** Number of the last change in the table; 0: none was ever read. */
  revision: number;
  /** Full reads. */
  snapshots: number;
  /** Changes applied individually. */
  changes: number;
  /** Failed reads from the database. */
  failures: number;
  /** 1 while notifications are received, else 0. */
  connected: number;
}

export interface KeyFeed {
  /** Loads the keys from disk immediately, then follows the database until stopped. */
  start(): void;
  /** Checks for changes now, notified or not. */
  refresh(): void;
  stop(): Promise<void>;
  /** Whether any keys were ever read, from the database or from disk. */
  readonly hasKeys: boolean;
  /** Milliseconds since the table was last known to match the database; null: never. */
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
  let revision: Revision | null = null;
  let currentNs: number | null = null;
  let listener: Listener | null = null;
  let retry: Timer | null = null;
  /** The read in progress, and whether another one must follow. */
  let syncing: Promise<void> | null = null;
  let again = false;
  let stopped = false;
  let isAway = false;
  let poll: Timer | null = null;
  /** The keys that the search for expired ones has still to look at. */
  let unsearched: Iterator<StoredKey> | null = null;
  /** Journal rewrites in progress; all but the last are cancelled. */
  let rewritings = 0;
  let lastRewriting: Promise<void> = Promise.resolve();
  /** When to retry the disk after a failed write. */
  let rewriteFromNs = 0;

  function reached(next: Revision): void {
    revision = next;
    counters.revision = next.number;
  }

  function pause(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  async function readAll(): Promise<void> {
    const rebuild = table.startRebuild();
    let leftOut = 0;
    const put = (key: LentKey): void => {
      if (!rebuild.putLent(key)) leftOut += 1;
    };
    const next = await database.transaction((tx) => fetchAll(tx, put), {
      snapshot: true,
      statementMsMax: SNAPSHOT_MS_MAX,
    });
    tellLeftOut(leftOut);
    if (revision !== null) append(await lostIn(rebuild, revision));
    rebuild.finish();
    unsearched = null;
    reached(next);
    counters.snapshots += 1;
    rewrite();
  }

  /** The other keys are served and followed, because a revocation must take effect. */
  function tellLeftOut(count: number): void {
    if (count === 0) return;
    log.error(
      { keys: count },
      "more keys than an edge can hold: those that are left out are refused",
    );
  }

  /** Keys that are here and not in the full set, as removals from the file on disk. */
  async function lostIn(rebuild: Rebuild, since: Revision): Promise<KeyChanges> {
    const removals: Buffer[] = [];
    let looked = 0;
    for (const { sha256 } of table.rows()) {
      if (!rebuild.has(sha256)) removals.push(sha256);
      looked += 1;
      if (looked % KEY_SLICE_ROWS === 0) await pause();
    }
    return { since, revision: since, plans: [], puts: [], removals };
  }

  function append(changes: KeyChanges): void {
    try {
      journal.append(changes);
    } catch (error) {
      log.error({ err: error }, "a change of keys cannot be kept on disk; it holds all the same");
    }
  }

  /** Starts a rewrite; changes are applied meanwhile, because none may wait for a disk. */
  function rewrite(): void {
    if (revision === null) return;
    rewritings += 1;
    lastRewriting = journal.rewrite(table, revision, pause).then(
      () => {
        rewritings -= 1;
      },
      (error: unknown) => {
        rewritings -= 1;
        rewriteFromNs = clock.nowNs() + KEY_JOURNAL_RETRY_MS * NS_PER_MS;
        const message = "the keys cannot be kept on disk; a restart would need the database";
        log.error({ err: error }, message);
      },
    );
  }

  async function readChanges(since: Revision): Promise<void> {
    const changes = await database.transaction((tx) => fetchChanges(tx, since, table), {
      snapshot: true,
    });
    if (changes === null) {
      await readAll();
      return;
    }
    if (!isSameRevision(changes.revision, since)) {
      for (const part of partsOf(changes)) {
        apply(part);
        await pause();
      }
      reached(changes.revision);
    }
    const mayRewrite = rewritings === 0 && clock.nowNs() >= rewriteFromNs;
    if (mayRewrite && journal.needsRewrite) rewrite();
  }

  function apply(changes: KeyChanges): void {
    // Disk first: a key revoked here must not return after a restart.
    append(changes);
    for (const plan of changes.plans) table.setPlan(plan);
    for (const sha256 of changes.removals) table.remove(sha256);
    let leftOut = 0;
    for (const row of changes.puts) if (!table.put(row)) leftOut += 1;
    tellLeftOut(leftOut);
    counters.changes += changes.plans.length + changes.removals.length + changes.puts.length;
  }

  /**
   * Removes keys that expired more than a day ago; the database notes no change when a key expires.
   * Looks at one slice of the keys at each read, and asks the database before it removes any,
   * because this host's clock may be wrong.
   */
  async function removeExpired(at: Revision): Promise<void> {
    const expired: Buffer[] = [];
    const untilMs = clock.unixMs() - KEY_EXPIRED_KEPT_MS;
    unsearched ??= table.rows();
    for (let looked = 0; looked < KEY_SLICE_ROWS && unsearched !== null; looked += 1) {
      const { value: key, done } = unsearched.next();
      if (done) unsearched = null;
      else if ((key.policy?.expiresUnixMs ?? untilMs) < untilMs) expired.push(key.sha256);
    }
    const removals = await fetchEnded(database, expired);
    if (removals.length > 0) apply({ since: at, revision: at, plans: [], puts: [], removals });
  }

  async function readOnce(): Promise<void> {
    try {
      const startNs = clock.nowNs();
      if (revision === null) await readAll();
      else await readChanges(revision);
      if (revision !== null) await removeExpired(revision);
      currentNs = startNs;
      if (isAway) log.info({ revision: counters.revision }, "the accounts database is read again");
      isAway = false;
    } catch (error) {
      counters.failures += 1;
      const known = table.counters.keys;
      // Once per outage, because it is retried twice a second.
      if (!isAway) {
        const message = "the accounts database was not read; known keys stay";
        log.warn({ err: error, keys: known }, message);
      }
      isAway = true;
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
        tellOfDisk(deps, kept);
      } catch (error) {
        log.error({ err: error }, "the keys on disk cannot be read");
      }
      // A proxy before the database can silently drop notifications.
      poll = clock.every(KEY_POLL_MS, sync);
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
      poll?.cancel();
      retry?.cancel();
      await listener?.stop();
      await syncing;
      await lastRewriting;
      journal.close();
    },
  };
}

/** Logs the keys found on disk: without the database the edge knows no others. */
function tellOfDisk({ log, table, journal }: KeyFeedDeps, kept: Revision | null): void {
  const { bytesCut } = journal.counters;
  const found = { keys: table.counters.keys, revision: kept?.number ?? null };
  if (bytesCut > 0) {
    log.warn({ ...found, bytesCut }, "the keys on disk were not whole; what was is taken");
  } else if (kept === null) log.info({}, "no keys are on disk yet");
  else log.info(found, "keys taken from disk");
}

const KEYS_CHANNEL = "touchdown_keys";
/** A million keys, 100 MB, over a slow line; a stalled read is aborted earlier. */
const SNAPSHOT_MS_MAX = 600_000;

/**
 * Splits the change, so that requests are served in between: removals first, then keys in slices.
 * Only the last part sets the new revision.
 */
function partsOf(changes: KeyChanges): readonly KeyChanges[] {
  const { since, revision, puts } = changes;
  const parts: KeyChanges[] = [];
  for (let start = 0; start === 0 || start < puts.length; start += KEY_SLICE_ROWS) {
    const end = start + KEY_SLICE_ROWS;
    const part = { since, revision: end < puts.length ? since : revision };
    const first = start === 0 ? changes : { plans: [], removals: [] };
    const { plans, removals } = first;
    parts.push({ ...part, plans, removals, puts: puts.slice(start, end) });
  }
  return parts;
}
