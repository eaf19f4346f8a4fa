import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/postgres.ts";
import { until } from "../../support/wait.ts";

const there = await testDatabase();
const { owner } = there;
const edge = there.open(there.edgeUrl);

async function makeKeys(count: number): Promise<readonly { id: string; account: string }[]> {
  return await owner.query<{ id: string; account: string }>(
    `with made as (insert into touchdown.accounts (name, plan, created_at)
       values ('a', 'Beta', now()) returning id)
     insert into touchdown.keys (id, account_id, sha256, hint, label, created_at)
     select gen_random_uuid(), id, sha256((id || n::text)::bytea), 'td_…', '', now()
     from made, generate_series(1, $1) n
     returning id, account_id as account`,
    [count],
  );
}

async function revision(): Promise<number> {
  const [row] = await edge.query<{ revision: number }>(
    "select revision from touchdown.edge_revision",
  );
  return row?.revision ?? 0;
}

const changesAfter = (number: number) =>
  edge.query<{ kind: string; id: string }>(
    "select kind, id from touchdown.edge_changes where revision > $1 order by revision, id",
    [number],
  );

const WHOLE = "DELETE, INSERT, SELECT, UPDATE";

/** All rights of a role on the schema's objects, including those on single columns. */
async function rightsOf(role: string): Promise<readonly string[]> {
  const relations = await owner.query<{ readonly name: string; readonly rights: string }>(
    `select c.relname as name, string_agg(r, ', ' order by r) as rights
     from pg_class c cross join unnest(array['SELECT', 'INSERT', 'UPDATE', 'REFERENCES', 'DELETE',
       'TRUNCATE', 'TRIGGER', 'MAINTAIN', 'USAGE']) as r
     where c.relnamespace = 'touchdown'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S')
       and case
         when c.relkind = 'S' then
           r in ('SELECT', 'UPDATE', 'USAGE') and has_sequence_privilege($1, c.oid, r)
         when r in ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES') then
           has_any_column_privilege($1, c.oid, r)
         else r <> 'USAGE' and has_table_privilege($1, c.oid, r)
       end
     group by c.relname`,
    [role],
  );
  const others = await owner.query<{ readonly name: string }>(
    `select proname || '()' as name from pg_proc where pronamespace = 'touchdown'::regnamespace
       and has_function_privilege($1, oid, 'EXECUTE')
     union all select 'schema: CREATE' where has_schema_privilege($1, 'touchdown', 'CREATE')`,
    [role],
  );
  const told = relations.map(({ name, rights }) => `${name}: ${rights}`);
  return [...told, ...others.map(({ name }) => name)].toSorted();
}

describe("the revision", () => {
  it("rises with every change that edges must know, and names what changed", async () => {
    const before = await revision();
    const [key] = await makeKeys(1);
    if (key === undefined) throw new Error("no key was made");
    const acts = [
      ["update touchdown.keys set revoked_at = now() where id = $1", key.id, "key"],
      ["update touchdown.keys set revoked_at = null where id = $1", key.id, "key"],
      ["update touchdown.keys set burst = 1, rate_per_second = 1 where id = $1", key.id, "key"],
      ["update touchdown.accounts set disabled_at = now() where id = $1", key.account, "account"],
      ["update touchdown.plans set burst = burst + 1 where name = $1", "Beta", "plan"],
    ] as const;
    for (const [sql, id] of acts) await owner.query(sql, [id]);
    expect(await changesAfter(before)).toEqual([
      { kind: "key", id: key.id },
      ...acts.map(([, id, kind]) => ({ kind, id })),
    ]);
    expect(await revision()).toBe(before + 1 + acts.length);
  });

  it("stays with what edges need not know", async () => {
    const [key] = await makeKeys(1);
    const before = await revision();
    await owner.query("update touchdown.keys set kek_id = 'x', ciphertext = '', nonce = $1", [
      Buffer.alloc(12),
    ]);
    const other = "update touchdown.accounts set admin = true, name = 'another' where id = $1";
    await owner.query(other, [key?.account]);
    await owner.query("update touchdown.keys set label = 'another' where id = $1", [key?.id]);
    await owner.query("insert into touchdown.key_uses values ($1, 'e', now())", [key?.id]);
    await owner.query("update touchdown.keys set revoked_at = now() where false");
    expect(await revision()).toBe(before);
  });

  it("is sent on the channel once the change is visible", async () => {
    const heard: string[] = [];
    let ready = false;
    const listener = edge.listen("touchdown_keys", {
      notice: (payload) => void heard.push(payload),
      connected: () => {
        ready = true;
      },
      lost() {},
    });
    await until("the channel is heard", () => ready);
    await makeKeys(3);
    await until("one notice", () => heard.length > 0);
    expect(heard).toEqual([String(await revision())]);
    await listener.stop();
  });

  it("becomes visible in order however transactions end", async () => {
    const [left, right] = [await makeKeys(1), await makeKeys(1)];
    const before = await revision();
    let first: Promise<unknown> = Promise.resolve();
    await owner.transaction(async (tx) => {
      const change = "update touchdown.keys set expires_at = now() where id = $1";
      await tx.query(change, [left[0]?.id]);
      first = owner.query(change, [right[0]?.id]);
      await tx.query("select pg_sleep(0.1)");
      expect(await changesAfter(before)).toEqual([]);
    });
    await first;
    expect((await changesAfter(before)).map(({ id }) => id)).toEqual([left[0]?.id, right[0]?.id]);
  });

  it("carries the digest of a changed key, also when it is revoked", async () => {
    const [key] = await makeKeys(1);
    const [stored] = await owner.query("select sha256 from touchdown.keys where id = $1", [
      key?.id,
    ]);
    const before = await revision();
    await owner.query("update touchdown.keys set revoked_at = now() where id = $1", [key?.id]);
    await owner.query("update touchdown.plans set burst = burst + 1 where name = 'Beta'");
    const told = "select sha256 from touchdown.edge_changes where revision > $1 order by revision";
    expect(await edge.query(told, [before])).toEqual([stored, { sha256: null }]);
  });

  it("notes a change of very many keys as one of everything", async () => {
    const before = await revision();
    await makeKeys(10_001);
    expect(await changesAfter(before)).toEqual([{ kind: "all", id: "" }]);
  });
});

describe("what edges see", () => {
  it("is the keys that are good, with their account's plan", async () => {
    const [good, revoked, expired] = await makeKeys(3);
    const [disabled] = await makeKeys(1);
    await owner.query("update touchdown.keys set revoked_at = now() where id = $1", [revoked?.id]);
    await owner.query("update touchdown.keys set expires_at = now() where id = $1", [expired?.id]);
    await owner.query("update touchdown.accounts set disabled_at = now() where id = $1", [
      disabled?.account,
    ]);
    const ids = [good, revoked, expired, disabled].map((key) => key?.id);
    const seen = await edge.query("select * from touchdown.edge_keys where key_id = any ($1)", [
      ids,
    ]);
    expect(seen).toEqual([
      {
        key_id: good?.id,
        sha256: expect.any(Buffer),
        account_id: good?.account,
        plan: "Beta",
        expires_at: null,
        cidrs: [],
        rate_per_second: null,
        burst: null,
      },
    ]);
  });

  it("is these views and this function, of all that there is, and reading alone", async () => {
    expect(await rightsOf("touchdown_edge")).toEqual([
      "edge_changes: SELECT",
      "edge_client_keys: SELECT",
      "edge_keys: SELECT",
      "edge_plans: SELECT",
      "edge_revision: SELECT",
      "edge_write_usage()",
    ]);
  });

  it("has no key text, no user's name and no plan's rights", async () => {
    const columns = await owner.query<{ readonly at: string }>(
      `select table_name || '.' || column_name as at from information_schema.columns
       where table_schema = 'touchdown' and table_name like 'edge\\_%' order by 1`,
    );
    expect(columns.map(({ at }) => at)).toEqual([
      ...["id", "kind", "mark_before", "revision", "sha256"].map((name) => `edge_changes.${name}`),
      ...["edge_client_keys", "edge_keys"].flatMap((view) => [
        ...["account_id", "burst", "cidrs", "expires_at"].map((name) => `${view}.${name}`),
        ...["key_id", "plan", "rate_per_second", "sha256"].map((name) => `${view}.${name}`),
      ]),
      ...["burst", "name", "rate_per_second", "shared"].map((name) => `edge_plans.${name}`),
      ...["mark", "oldest", "revision"].map((name) => `edge_revision.${name}`),
    ]);
  });

  it("cannot be changed by them", async () => {
    for (const sql of [
      "update touchdown.edge_keys set plan = 'x'",
      "update touchdown.edge_plans set burst = 1000000",
      "delete from touchdown.edge_changes",
      "insert into touchdown.edge_plans values ('x', 1, 1, false)",
      "select touchdown.note_change('all', array[''])",
      "create table touchdown.mine (n int)",
      "set role touchdown_control",
    ]) {
      await expect(edge.query(sql)).rejects.toThrow(
        /permission denied|cannot (?:update|delete|insert)/,
      );
    }
  });
});

describe("the dashboard's login", () => {
  it("may do this, of all that there is", async () => {
    const whole = ["accounts", "api_tokens", "identities", "key_uses", "keys", "login_attempts"];
    const tables = [...whole, "plans", "sessions"].map((name) => `${name}: ${WHOLE}`);
    const read = [
      "edge_changes",
      "edge_client_keys",
      "edge_keys",
      "edge_plans",
      "edge_revision",
      "migrations",
    ];
    const pruned = ["key_changes", "usage_batches", "usage_hours", "usage_minutes"];
    const reasons = ["usage_reason_hours", "usage_reason_minutes"];
    expect(await rightsOf("touchdown_control")).toEqual(
      [
        "audit: DELETE, INSERT, SELECT",
        "key_challenges: DELETE, INSERT, SELECT",
        ...tables,
        ...read.map((name) => `${name}: SELECT`),
        ...[...pruned, ...reasons].map((name) => `${name}: DELETE, SELECT`),
      ].toSorted(),
    );
  });

  it("can neither change the audit nor write usage nor make tables", async () => {
    for (const sql of [
      "update touchdown.audit set action = 'x'",
      "truncate touchdown.audit",
      "insert into touchdown.usage_batches values (gen_random_uuid(), 1)",
      "select touchdown.edge_write_usage(gen_random_uuid(), 1, 'e', 'r', '[]')",
      "create table touchdown.mine (n int)",
    ]) {
      await expect(there.database.query(sql)).rejects.toMatchObject({ kind: "refused" });
    }
  });
});
