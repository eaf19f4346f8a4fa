import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createDatabase, type Database } from "../../../src/accounts/database/database.ts";
import { createKeyFeed } from "../../../src/accounts/keys/feed.ts";
import { createKeyJournal } from "../../../src/accounts/keys/journal.ts";
import { tokenSha256 } from "../../../src/accounts/keys/keys-file.ts";
import { createKeyTable } from "../../../src/accounts/keys/table.ts";
import { migrate } from "../../../src/control/migrations/migrate.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { startPostgres } from "../../../src/sandbox/postgres.ts";
import { silent } from "../../support/postgres.ts";
import { until } from "../../support/wait.ts";

const deps = { clock: systemClock, log: silent };
const workFolder = mkdtempSync(join(tmpdir(), "touchdown-restored-"));
chmodSync(workFolder, 0o755);
const journalPath = join(workFolder, "edge.journal");
const stops: (() => Promise<void>)[] = [];

afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
  rmSync(workFolder, { recursive: true, force: true });
});

/** Starts a server on this folder and a connection as its owner; `stop` ends both. */
async function start(folder: string) {
  const postgres = await startPostgres(deps, { folder, port: null });
  const owner = createDatabase(deps, { url: postgres.ownerUrl, connections: 2 });
  await migrate(owner);
  const stop = async (): Promise<void> => {
    if (stops.includes(stop)) stops.splice(stops.indexOf(stop), 1);
    await owner.stop();
    await postgres.stop();
  };
  stops.push(stop);
  return { folder: postgres.folder, edgeUrl: postgres.edgeUrl, owner, stop };
}

/** Starts an edge's key feed, whose journal persists on disk from one start to the next. */
function startEdge(url: string) {
  const table = createKeyTable();
  const journal = createKeyJournal(journalPath);
  const database = createDatabase(deps, { url });
  const feed = createKeyFeed({ ...deps, database, table, journal });
  feed.start();
  const stop = async (): Promise<void> => {
    if (stops.includes(stop)) stops.splice(stops.indexOf(stop), 1);
    await feed.stop();
    await database.stop();
  };
  stops.push(stop);
  const known = (tokens: readonly string[]) => {
    return tokens.filter((token) => table.lookup(tokenSha256(token)) !== null);
  };
  return { feed, journal, known, stop };
}

async function makeKey(owner: Database, token: string): Promise<void> {
  await owner.query(
    `insert into touchdown.keys (id, account_id, sha256, hint, label, created_at)
     select gen_random_uuid(), id, $1, 'td_…', '', now() from touchdown.accounts`,
    [tokenSha256(token)],
  );
}

async function revoke(owner: Database, token: string): Promise<void> {
  await owner.query("update touchdown.keys set revoked_at = now() where sha256 = $1", [
    tokenSha256(token),
  ]);
}

const revisionOf = async (owner: Database): Promise<number> => {
  const [row] = await owner.query<{ revision: number }>(
    "select revision from touchdown.edge_revision",
  );
  return row?.revision ?? 0;
};

const copyFolder = (from: string, to: string): void => {
  rmSync(to, { recursive: true, force: true });
  execFileSync("cp", ["-a", from, to]);
};

describe("database restored from a backup", () => {
  it("is read completely, even at a revision that the edge already has", async () => {
    const first = await start(join(workFolder, "postgres"));
    const tokens = ["kept", "revoked since", "made since", "made after", "made last"];
    await first.owner.query(
      "insert into touchdown.accounts (name, plan, created_at) values ('a', 'Beta', now())",
    );
    for (const token of ["kept", "revoked since"]) await makeKey(first.owner, token);
    await first.stop();
    const backup = join(workFolder, "backup");
    copyFolder(first.folder, backup);

    const second = await start(join(workFolder, "postgres"));
    await makeKey(second.owner, "made since");
    await revoke(second.owner, "revoked since");
    const revision = await revisionOf(second.owner);
    const edge = startEdge(second.edgeUrl);
    await until("all keys are known", () => edge.feed.counters.revision === revision);
    await until("the journal is on disk", () => edge.journal.counters.rewrites === 1);
    expect(edge.known(tokens)).toEqual(["kept", "made since"]);
    await edge.stop();
    await second.stop();

    copyFolder(backup, second.folder);
    const restored = await start(join(workFolder, "postgres"));
    expect(await revisionOf(restored.owner)).toBe(revision - 2);
    await makeKey(restored.owner, "made after");
    await makeKey(restored.owner, "made last");
    expect(await revisionOf(restored.owner)).toBe(revision);
    const again = startEdge(restored.edgeUrl);
    await until("all keys are known again", () => again.feed.ageMs() !== null);
    expect(again.known(tokens)).toEqual(["kept", "revoked since", "made after", "made last"]);
    expect(again.feed.counters.snapshots).toBe(1);
    await makeKey(restored.owner, "made since");
    await until("the change is received", () => again.known(["made since"]).length === 1);
    expect(again.feed.counters.snapshots).toBe(1);
  });
});
