import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDatabase, type Database } from "../../../src/accounts/database/database.ts";
import { createKeyFeed, type KeyFeed } from "../../../src/accounts/keys/feed.ts";
import { looksMistyped } from "../../../src/accounts/keys/format.ts";
import { createKeyJournal, type KeyJournal } from "../../../src/accounts/keys/journal.ts";
import type { LentKey } from "../../../src/accounts/keys/key.ts";
import { tokenSha256 } from "../../../src/accounts/keys/keys-file.ts";
import { createKeyTable, type KeyTable } from "../../../src/accounts/keys/table.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { createAccessControl } from "../../../src/limits/access-control.ts";
import { silent, testDatabase } from "../../support/postgres.ts";
import { until } from "../../support/wait.ts";

const testDb = await testDatabase();
const { owner } = testDb;
let folder = "";
const running: { feed: KeyFeed; database: Database }[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-feed-"));
});
afterEach(async () => {
  for (const { feed, database } of running.splice(0)) {
    await feed.stop();
    await database.stop();
  }
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the key feed of an edge with the journal of this name. */
function startFeed(
  url = testDb.edgeUrl,
  name = "edge",
  table = createKeyTable(),
  clock = systemClock,
): { readonly feed: KeyFeed; readonly table: KeyTable; stop(): Promise<void> } {
  const journal = createKeyJournal(join(folder, `${name}.journal`));
  const database = createDatabase({ clock, log: silent }, { url });
  const feed = createKeyFeed({ clock, log: silent, database, table, journal });
  const one = { feed, database };
  running.push(one);
  feed.start();
  return {
    feed,
    table,
    async stop() {
      running.splice(running.indexOf(one), 1);
      await feed.stop();
      await database.stop();
    },
  };
}

async function makeAccount(plan = "Beta"): Promise<string> {
  const [row] = await owner.query<{ id: string }>(
    "insert into touchdown.accounts (name, plan, created_at) values ('a', $1, now()) returning id",
    [plan],
  );
  return row?.id ?? "";
}

async function makeKey(account: string, token: string, changes = ""): Promise<void> {
  await owner.query(
    `insert into touchdown.keys (id, account_id, sha256, hint, label, created_at)
     values (gen_random_uuid(), $1, $2, 'td_…', '', now())`,
    [account, tokenSha256(token)],
  );
  if (changes !== "") await change(token, changes);
}

async function change(token: string, set: string): Promise<void> {
  await owner.query(`update touchdown.keys set ${set} where sha256 = $1`, [tokenSha256(token)]);
}

const knows = (table: KeyTable, token: string) => table.lookup(tokenSha256(token)) !== null;

describe("keys of an edge", () => {
  it("are all valid keys, with their plans and policies", async () => {
    const account = await makeAccount();
    await makeKey(account, "plain");
    await makeKey(account, "gone", "revoked_at = now()");
    await makeKey(
      account,
      "narrow",
      "cidrs = '{10.0.0.0/8}', rate_per_second = 2, burst = 3, expires_at = now() + '1 hour'",
    );
    const { feed, table } = startFeed();
    await until("the keys are read", () => feed.counters.snapshots === 1);
    expect(table.lookup(tokenSha256("plain"))).toMatchObject({
      account,
      plan: { name: "Beta", ratePerSecond: 50, burst: 100, shared: false },
      policy: null,
    });
    expect(knows(table, "gone")).toBe(false);
    const { policy } = table.lookup(tokenSha256("narrow")) ?? {};
    expect(policy?.limit).toEqual({ ratePerSecond: 2, burst: 3 });
    expect(policy?.networks?.ranges).toEqual(["10.0.0.0/8"]);
    expect(policy?.expiresUnixMs).toBeGreaterThan(systemClock.unixMs());
  });

  it("follow each change: created, limited, moved, revoked, disabled, changed plan", async () => {
    const { feed, table } = startFeed();
    await until("the keys are read", () => feed.counters.snapshots === 1);
    const [one, two] = [await makeAccount(), await makeAccount()];
    await makeKey(one, "changes");
    await until("a new key", () => knows(table, "changes"));
    await change("changes", "rate_per_second = 1, burst = 1");
    const owned = () => table.lookup(tokenSha256("changes"));
    await until("its own limit", () => owned()?.policy?.limit?.burst === 1);
    await owner.query("update touchdown.keys set account_id = $1 where sha256 = $2", [
      two,
      tokenSha256("changes"),
    ]);
    await until("another owner", () => owned()?.account === two);
    await owner.query("update touchdown.plans set burst = 77 where name = 'Beta'");
    await until("another plan", () => owned()?.plan.burst === 77);
    await owner.query("update touchdown.accounts set disabled_at = now() where id = $1", [two]);
    await until("a disabled account", () => owned() === null);
    await owner.query("update touchdown.accounts set disabled_at = null where id = $1", [two]);
    await until("an enabled account", () => owned() !== null);
    await change("changes", "revoked_at = now()");
    await until("a revoked key", () => owned() === null);
    expect(feed.counters.snapshots).toBe(1);
    await owner.query("update touchdown.plans set burst = 100 where name = 'Beta'");
  });

  it("are rejected while their account is disabled, and the message names that cause", async () => {
    const account = await makeAccount();
    const token = "a key of 16 characters and more";
    await makeKey(account, token);
    const { table } = startFeed();
    const access = createAccessControl({
      clock: systemClock,
      keys: table,
      looksMistyped,
      globalLimits: null,
    });
    const origin = { remoteAddress: () => "127.0.0.1" };
    await until("the key is accepted", () => access.authenticate(token, origin) !== null);
    await owner.query("update touchdown.accounts set disabled_at = now() where id = $1", [account]);
    await until("the key is rejected", () => access.authenticate(token, origin) === null);
    const rejection = access.rejectionOf(token, origin);
    expect(rejection).toMatchObject({ reason: "unauthorized" });
    expect(rejection.message).toContain("its account is disabled");
    await owner.query("update touchdown.accounts set disabled_at = null where id = $1", [account]);
    await until("the key is accepted again", () => access.authenticate(token, origin) !== null);
  });

  it("are read as a new snapshot if 10,001 of them change together", async () => {
    const { feed, table } = startFeed();
    await until("the keys are read", () => feed.counters.snapshots === 1);
    const account = await makeAccount();
    await owner.query(
      `insert into touchdown.keys (id, account_id, sha256, hint, label, created_at)
       select gen_random_uuid(), $1, sha256(('many ' || n)::bytea), 'td_…', '', now()
       from generate_series(1, 10001) n`,
      [account],
    );
    await until("all keys are known", () => knows(table, "many 10001"));
    expect(feed.counters.snapshots).toBe(2);
  });
});

describe("edge without its database or after a restart", () => {
  it("serves known keys, and receives the missed changes later", async () => {
    const account = await makeAccount();
    await makeKey(account, "stays");
    const { feed, table } = startFeed();
    await until("the keys are read", () => knows(table, "stays") && feed.counters.connected === 1);
    await owner.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and usename <> current_user`,
    );
    await until("the loss is noticed", () => feed.counters.connected === 0);
    expect(knows(table, "stays")).toBe(true);
    await change("stays", "revoked_at = now()");
    await until("the connection is back", () => feed.counters.connected === 1);
    await until("the revocation", () => !knows(table, "stays"));
  });

  it("serves the known keys after a restart, and no revoked one", async () => {
    const account = await makeAccount();
    await makeKey(account, "known");
    await makeKey(account, "revoked later");
    const first = startFeed();
    await until("the keys are read", () => first.feed.counters.snapshots === 1);
    await until("the revision is on disk", () => first.feed.counters.revision > 0);
    await change("revoked later", "revoked_at = now()");
    await until("the revocation", () => !knows(first.table, "revoked later"));
    await first.stop();
    const second = startFeed("postgres://u:p@127.0.0.1:1/none");
    expect(second.feed.hasKeys).toBe(true);
    expect(knows(second.table, "known")).toBe(true);
    expect(knows(second.table, "revoked later")).toBe(false);
    expect(second.feed.ageMs()).toBeNull();
  });

  it("continues from the revision on disk after a restart", async () => {
    const account = await makeAccount();
    await makeKey(account, "before");
    const first = startFeed();
    await until("the keys are read", () => knows(first.table, "before"));
    await first.stop();
    await change("before", "revoked_at = now()");
    await makeKey(account, "meanwhile");
    const second = startFeed();
    expect(knows(second.table, "before")).toBe(true);
    await until("the missed changes", () => knows(second.table, "meanwhile"));
    expect(knows(second.table, "before")).toBe(false);
    expect(second.feed.counters.snapshots).toBe(0);
  });

  it("reports that it never had keys", async () => {
    const { feed } = startFeed("postgres://u:p@127.0.0.1:1/none", "fresh");
    expect(feed.hasKeys).toBe(false);
    expect(feed.counters.revision).toBe(0);
  });
});

it("omits keys that exceed the capacity, and applies revocations of the others", async () => {
  for (const token of ["fits or not", "not or fits"]) await makeKey(await makeAccount(), token);
  const table = createKeyTable();
  const rebuild = table.startRebuild();
  const freeEntries = [1];
  const putLent = (key: LentKey): boolean => freeEntries.pop() === 1 && rebuild.putLent(key);
  Object.assign(table, { startRebuild: () => ({ ...rebuild, putLent }) });
  const { feed } = startFeed(testDb.edgeUrl, "full", table);
  await until("the keys are read", () => feed.counters.snapshots + feed.counters.failures > 0);
  expect([feed.counters.failures, table.counters.keys]).toEqual([0, 1]);
  const revoke = "update touchdown.keys set revoked_at = now() where sha256 = $1";
  await owner.query(revoke, [[...table.rows()][0]?.sha256]);
  await until("the revocation", () => table.counters.keys === 0);
});

describe("disk that rejects all writes", () => {
  it("does not prevent changes from being applied", async () => {
    const account = await makeAccount();
    await makeKey(account, "to be revoked");
    const table = createKeyTable();
    const errors: string[] = [];
    const full = (): never => {
      throw new Error("no space left");
    };
    const journal: KeyJournal = {
      load: () => null,
      append: full,
      rewrite: async () => full(),
      needsRewrite: false,
      close() {},
      counters: { linesRead: 0, bytesCut: 0, appends: 0, behind: 0, rewrites: 0 },
    };
    const log = { ...silent, error: (_: object, message: string) => void errors.push(message) };
    const database = createDatabase({ clock: systemClock, log: silent }, { url: testDb.edgeUrl });
    const feed = createKeyFeed({ clock: systemClock, log, database, table, journal });
    running.push({ feed, database });
    feed.start();
    await until("the keys are read", () => knows(table, "to be revoked"));
    await change("to be revoked", "revoked_at = now()");
    await until("the revocation", () => !knows(table, "to be revoked"));
    expect(errors).toHaveLength(2);
  });
});

describe("disk that is full temporarily", () => {
  it("restores no revoked key, with or without the database", async () => {
    const account = await makeAccount();
    for (const token of ["one", "two"]) await makeKey(account, token);
    const table = createKeyTable();
    const journal = createKeyJournal(join(folder, "edge.journal"));
    let isFull = false;
    const failing: KeyJournal = {
      ...journal,
      needsRewrite: false,
      append(changes) {
        if (isFull) throw new Error("no space left");
        journal.append(changes);
      },
    };
    const database = createDatabase({ clock: systemClock, log: silent }, { url: testDb.edgeUrl });
    const feed = createKeyFeed({
      clock: systemClock,
      log: silent,
      database,
      table,
      journal: failing,
    });
    running.push({ feed, database });
    feed.start();
    await until("the keys are on disk", () => journal.counters.rewrites === 1);
    isFull = true;
    await change("one", "revoked_at = now()");
    await until("the first revocation", () => !knows(table, "one"));
    isFull = false;
    await change("two", "revoked_at = now()");
    await until("the second revocation", () => !knows(table, "two"));
    running.pop();
    await feed.stop();
    await database.stop();
    const alone = startFeed("postgres://u:p@127.0.0.1:1/none");
    expect(knows(alone.table, "two")).toBe(false);
    await alone.stop();
    const again = startFeed();
    await until("the snapshot is read", () => again.feed.ageMs() !== null);
    expect(knows(again.table, "one")).toBe(false);
  });
});

describe("edge that reads a second snapshot", () => {
  it("has removals on disk even if it is killed before the journal is rewritten", async () => {
    const account = await makeAccount();
    for (const token of ["kept on disk", "gone from disk"]) await makeKey(account, token);
    const table = createKeyTable();
    const journal = createKeyJournal(join(folder, "edge.journal"));
    let kill = (): void => undefined;
    const killed = new Promise<void>((resolve) => {
      kill = resolve;
    });
    const slow: KeyJournal = {
      ...journal,
      needsRewrite: false,
      rewrite: (...all) => (journal.counters.rewrites === 0 ? journal.rewrite(...all) : killed),
    };
    const deps = { clock: systemClock, log: silent };
    const database = createDatabase(deps, { url: testDb.edgeUrl });
    const feed = createKeyFeed({ ...deps, database, table, journal: slow });
    running.push({ feed, database });
    feed.start();
    await until("the keys are on disk", () => journal.counters.rewrites === 1);
    await owner.transaction(async (tx) => {
      const revoke = "update touchdown.keys set revoked_at = now() where sha256 = $1";
      await tx.query(revoke, [tokenSha256("gone from disk")]);
      // From here on the database can no longer report the change.
      await tx.query("delete from touchdown.key_changes");
    });
    await until("the second snapshot is read", () => feed.counters.snapshots === 2);
    const found = createKeyTable();
    createKeyJournal(join(folder, "edge.journal")).load(found);
    kill();
    expect([knows(found, "kept on disk"), knows(found, "gone from disk")]).toEqual([true, false]);
  });
});

describe("change without a notification", () => {
  it("is found by polling", async () => {
    const account = await makeAccount();
    const table = createKeyTable();
    const journal = createKeyJournal(join(folder, "edge.journal"));
    const database = createDatabase({ clock: systemClock, log: silent }, { url: testDb.edgeUrl });
    const withoutNotifications: Database = {
      ...database,
      listen(_, on) {
        on.connected();
        return { stop: () => Promise.resolve() };
      },
    };
    const fastClock = {
      ...systemClock,
      every: (_: number, act: () => void) => systemClock.every(10, act),
    };
    const feed = createKeyFeed({
      clock: fastClock,
      log: silent,
      database: withoutNotifications,
      table,
      journal,
    });
    running.push({ feed, database });
    feed.start();
    await until("the keys are read", () => feed.counters.snapshots === 1);
    await makeKey(account, "not notified");
    await until("the new key", () => knows(table, "not notified"));
  });
});

describe("plan without keys", () => {
  it("is on disk once a key uses it", async () => {
    await owner.query(
      `insert into touchdown.plans (name, rate_per_second, burst, shared)
       values ('Idle', 5, 5, false)`,
    );
    await makeKey(await makeAccount(), "on Beta");
    const first = startFeed();
    await until("the keys are read", () => knows(first.table, "on Beta"));
    await makeKey(await makeAccount("Idle"), "on Idle");
    await until("the new key", () => knows(first.table, "on Idle"));
    await first.stop();
    const alone = startFeed("postgres://u:p@127.0.0.1:1/none");
    expect(alone.table.lookup(tokenSha256("on Idle"))?.plan.burst).toBe(5);
  });
});

describe("key that expired a day ago", () => {
  it("is forgotten, also on disk, unless only the clock of the edge says so", async () => {
    let aheadMs = 0;
    const clock = { ...systemClock, unixMs: () => systemClock.unixMs() + aheadMs };
    const { feed, table, stop } = startFeed(testDb.edgeUrl, "edge", createKeyTable(), clock);
    await until("the keys are read", () => feed.counters.snapshots === 1);
    const account = await makeAccount();
    for (const token of ["expired", "valid"]) {
      await makeKey(account, token, "expires_at = now() + '1 hour'");
      await until("the key is known", () => table.lookup(tokenSha256(token))?.policy != null);
    }
    await owner.transaction(async (tx) => {
      // Time passes in the database without a change that it would notify.
      await tx.query("set local session_replication_role = replica");
      const set = "update touchdown.keys set expires_at = now() - interval '25 hours'";
      await tx.query(`${set} where sha256 = $1`, [tokenSha256("expired")]);
    });
    aheadMs = 26 * 3_600_000;
    await until("the expired key is forgotten", () => {
      feed.refresh();
      return !knows(table, "expired");
    });
    expect(knows(table, "valid")).toBe(true);
    await stop();
    const alone = startFeed("postgres://u:p@127.0.0.1:1/none");
    expect([knows(alone.table, "expired"), knows(alone.table, "valid")]).toEqual([false, true]);
  });
});

describe("different database", () => {
  it("with a lower revision is read completely", async () => {
    const account = await makeAccount();
    await makeKey(account, "of the first database");
    const first = startFeed();
    await until("the keys are read", () => knows(first.table, "of the first database"));
    await first.stop();
    const other = await testDatabase();
    const second = startFeed(other.edgeUrl);
    await until("the snapshot is read", () => second.feed.counters.snapshots === 1);
    expect(second.table.counters.keys).toBe(0);
  });
});
