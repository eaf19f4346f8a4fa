import { describe, expect, it } from "vitest";
import { fetchAll, fetchChanges } from "../../../src/accounts/keys/fetch.ts";
import type { LentKey, StoredKey } from "../../../src/accounts/keys/key.ts";
import type { Revision } from "../../../src/accounts/keys/revision.ts";
import { createKeyTable } from "../../../src/accounts/keys/table.ts";
import { testDatabase } from "../../support/postgres.ts";

const testDb = await testDatabase();
const { owner } = testDb;
const edge = testDb.open(testDb.edgeUrl);
const OTHER_PLAN = "update touchdown.accounts set plan = 'Other' where id = $1";
await owner.query(
  "insert into touchdown.plans (name, rate_per_second, burst) values ('Other', 1, 1)",
);

async function makeKeys(count: number): Promise<string> {
  const [row] = await owner.query<{ id: string }>(
    `insert into touchdown.accounts (name, plan, created_at)
     values ('a', 'Beta', now()) returning id`,
  );
  const id = row?.id ?? "";
  await owner.query(
    `insert into touchdown.keys (id, account_id, sha256, hint, label, created_at)
     select gen_random_uuid(), $1::uuid, sha256(($1::uuid || ' ' || n)::bytea), 'td_…', '', now()
     from generate_series(1, $2::int) n`,
    [id, count],
  );
  return id;
}

async function readAll() {
  const rows: StoredKey[] = [];
  const put = ({ bytes, sha256At, idAt, ...rest }: LentKey) => {
    const sha256 = Buffer.from(bytes.subarray(sha256At, sha256At + 32));
    return rows.push({ ...rest, sha256, keyId: bytes.toString("hex", idAt, idAt + 16) }) > 0;
  };
  const revision = await edge.transaction((tx) => fetchAll(tx, put), { snapshot: true });
  return { rows, revision };
}

describe("keys that an edge fetches", () => {
  it("are complete over several fetches", async () => {
    const account = await makeKeys(4_500);
    const { rows } = await readAll();
    expect(rows.filter((row) => row.account === account)).toHaveLength(4_500);
    expect(new Set(rows.map((row) => row.keyId)).size).toBe(rows.length);
  });

  it("are found by the client key too, which ends with its API key", async () => {
    const account = await makeKeys(1);
    const clientSha256 = Buffer.alloc(32, 7);
    const before = await readAll();
    const table = createKeyTable();
    for (const row of before.rows) table.put(row);
    await owner.query("update touchdown.keys set client_sha256 = $2 where account_id = $1", [
      account,
      clientSha256,
    ]);
    const { rows, revision } = await readAll();
    const [own, client] = rows.filter((row) => row.account === account);
    expect(client).toEqual({ ...own, sha256: clientSha256, isDerived: true });
    expect(own?.isDerived).toBe(false);
    const changesSince = (since: Revision) =>
      edge.transaction((tx) => fetchChanges(tx, since, table));
    const puts = (await changesSince(before.revision))?.puts ?? [];
    expect(puts.map(({ sha256 }) => sha256)).toEqual([own?.sha256, clientSha256]);
    expect(puts.map(({ isDerived }) => isDerived)).toEqual([false, true]);
    const revoke = "update touchdown.keys set revoked_at = now() where account_id = $1";
    await owner.query(revoke, [account]);
    const after = await changesSince(revision);
    expect(after?.puts).toEqual([]);
    expect(after?.removals).toEqual(expect.arrayContaining([own?.sha256, clientSha256]));
    expect((await readAll()).rows.filter((row) => row.account === account)).toEqual([]);
  });

  it("keep a public key when an expired API key that it follows from is revoked", async () => {
    const account = await makeKeys(1);
    const digest = Buffer.alloc(32, 8);
    await owner.query(
      `update touchdown.keys set client_sha256 = $2, expires_at = now() - interval '1 second'
       where account_id = $1`,
      [account, digest],
    );
    const holder = await makeKeys(1);
    await owner.query(
      "update touchdown.keys set sha256 = $2, public_key = $2 where account_id = $1",
      [holder, digest],
    );
    const { revision } = await readAll();
    const revoke = "update touchdown.keys set revoked_at = now() where account_id = $1";
    await owner.query(revoke, [account]);
    const changes = await edge.transaction((tx) => fetchChanges(tx, revision, createKeyTable()));
    expect(changes?.puts).toMatchObject([{ account: holder, sha256: digest }]);
    expect(changes?.removals).toHaveLength(1);
    await owner.query(revoke, [holder]);
    const after = await edge.transaction((tx) => fetchChanges(tx, revision, createKeyTable()));
    expect(after?.removals).toContainEqual(digest);
  });

  it("are all changed keys of an account, and its removed ones", async () => {
    const account = await makeKeys(3);
    const { rows, revision } = await readAll();
    const table = createKeyTable();
    for (const row of rows) table.put(row);
    const read = () => edge.transaction((tx) => fetchChanges(tx, revision, table));
    expect(await read()).toMatchObject({ since: revision, revision, puts: [], removals: [] });
    await owner.query(OTHER_PLAN, [account]);
    expect((await read())?.puts).toHaveLength(3);
    await owner.query("update touchdown.accounts set disabled_at = now() where id = $1", [account]);
    const changes = await read();
    expect(changes).toMatchObject({ since: revision, puts: [] });
    expect(changes?.revision.number).toBe(revision.number + 2);
    expect(changes?.removals).toHaveLength(3);
  });

  it("are null if the database is behind the edge or has deleted a key", async () => {
    const account = await makeKeys(1);
    const { revision } = await readAll();
    const table = createKeyTable();
    const since = (from: Revision) => edge.transaction((tx) => fetchChanges(tx, from, table));
    expect(await since({ ...revision, number: revision.number + 1 })).toBeNull();
    await owner.query("delete from touchdown.keys where account_id = $1", [account]);
    expect(await since(revision)).toBeNull();
  });

  it("are null if a change in between was deleted", async () => {
    const [account, other] = [await makeKeys(3), await makeKeys(1)];
    const { revision } = await readAll();
    await owner.query(OTHER_PLAN, [other]);
    const revoke = "update touchdown.keys set revoked_at = now() where account_id = $1";
    await owner.query(revoke, [account]);
    await owner.query("update touchdown.accounts set plan = 'Beta' where id = $1", [other]);
    const since = () => edge.transaction((tx) => fetchChanges(tx, revision, createKeyTable()));
    expect((await since())?.removals).toHaveLength(3);
    const deletion = "delete from touchdown.key_changes where revision = $1";
    await owner.query(deletion, [revision.number + 2]);
    expect(await since()).toBeNull();
  });

  it("are null for another history, with the same number or a lower one", async () => {
    const account = await makeKeys(1);
    const { revision } = await readAll();
    const table = createKeyTable();
    const since = (from: Revision) => edge.transaction((tx) => fetchChanges(tx, from, table));
    const others = ["00000000-0000-4000-8000-000000000000", null];
    for (const mark of others) expect(await since({ ...revision, mark })).toBeNull();
    await owner.query(OTHER_PLAN, [account]);
    expect((await since(revision))?.puts).toHaveLength(1);
    for (const mark of others) expect(await since({ ...revision, mark })).toBeNull();
  });
});
