import { describe, expect, it } from "vitest";
import {
  USAGE_SLOT_BOUNDS,
  USAGE_WIRE_BOUNDS_NS,
} from "../../../src/accounts/usage/usage-shape.ts";
import { MIGRATIONS, migrate } from "../../../src/control/migrations/migrate.ts";
import { SetupError } from "../../../src/core/errors.ts";
import { testDatabase } from "../../support/postgres.ts";

const BEFORE = ["accounts", "logins", "usage", "edges", "marks", "edge-columns"];
const SINCE = ["successors", "last-used", "public-keys", "client-keys", "client-keys-in-use"];
const NAMES = [...BEFORE, ...SINCE];
const numbered = (index: number) => String(index + 1).padStart(4, "0");
const TITLES = NAMES.map((name, index) => `${numbered(index)}-${name}`);
const NEXT = NAMES.length + 1;

describe("migrations", () => {
  it("make the schema once, and then have nothing to do", async () => {
    const { owner } = await testDatabase({ migrated: false });
    expect(await migrate(owner)).toEqual(TITLES);
    expect(await migrate(owner)).toEqual([]);
    expect(await owner.query("select name, burst, rate_per_second from touchdown.plans")).toEqual([
      { name: "Beta", burst: 100, rate_per_second: 50 },
    ]);
  });

  it("are applied by one of many processes that start together", async () => {
    const { owner, open, url } = await testDatabase({ migrated: false });
    const others = [owner, open(url), open(url), open(url)];
    const applied = await Promise.all(others.map((database) => migrate(database)));
    expect(applied.filter((titles) => titles.length > 0)).toEqual([TITLES]);
    const [count] = await owner.query("select count(*) as n from touchdown.migrations");
    expect(count).toEqual({ n: TITLES.length });
  });

  it("are counted up without a gap", () => {
    const numbers = MIGRATIONS.map(({ number }) => number);
    expect(numbers).toEqual(NAMES.map((_, index) => index + 1));
  });

  it("bring a database of each version before up to date", async () => {
    const { owner } = await testDatabase({ migrated: false });
    for (const [index, title] of TITLES.entries()) {
      expect(await migrate(owner, MIGRATIONS.slice(0, index + 1))).toEqual([title]);
    }
    expect(await migrate(owner)).toEqual([]);
  });

  it("leave nothing behind when one fails", async () => {
    const { owner } = await testDatabase({ migrated: false });
    const sql = "create tabel x ()";
    const broken = [...MIGRATIONS, { number: NEXT, name: "broken", sql }];
    await expect(migrate(owner, broken)).rejects.toThrow(
      `migration ${numbered(NEXT - 1)}-broken failed`,
    );
    expect(await owner.query("select from pg_namespace where nspname = 'touchdown'")).toEqual([]);
    expect(await migrate(owner)).toEqual(TITLES);
  });

  it("refuse one that was changed after it was applied", async () => {
    const { owner } = await testDatabase();
    const changed = MIGRATIONS.map((one) => (one.number === 2 ? { ...one, sql: "--" } : one));
    await expect(migrate(owner, changed)).rejects.toThrow(SetupError);
    await expect(migrate(owner, changed)).rejects.toThrow(
      "migration 0002-logins of the accounts database is not the one of this version",
    );
  });

  it("refuse a database of a newer version", async () => {
    const { owner } = await testDatabase();
    const older = MIGRATIONS.slice(0, 3);
    await expect(migrate(owner, older)).rejects.toThrow(
      /has migration 0004-edges, which this version does not know .* run the newer version/,
    );
  });

  it("need no rights when nothing is to migrate, and otherwise name the role", async () => {
    const { database } = await testDatabase();
    expect(await migrate(database)).toEqual([]);
    const sql = "create table touchdown.x ()";
    const more = [...MIGRATIONS, { number: NEXT, name: "more", sql }];
    await expect(migrate(database, more)).rejects.toThrow(
      /must be created or migrated by its owner, .*permission denied/,
    );
  });
});

describe("the schema", () => {
  it("has as many buckets as edges count in", async () => {
    const { owner } = await testDatabase();
    const checks = await owner.query<{ def: string }>(
      `select pg_get_constraintdef(oid) as def from pg_constraint
       where conrelid = 'touchdown.usage_minutes'::regclass and contype = 'c' order by def`,
    );
    expect(checks.map(({ def }) => def)).toEqual([
      `CHECK ((cardinality(slots) = ${USAGE_SLOT_BOUNDS.length + 1}))`,
      `CHECK ((cardinality(wire) = ${USAGE_WIRE_BOUNDS_NS.length + 1}))`,
    ]);
  });

  it("keeps the audit from being changed, by its owner too", async () => {
    const { owner } = await testDatabase();
    await owner.query(
      `insert into touchdown.audit (at, actor_kind, action, detail)
       values (now(), 'system', 'x', '{}'), (now() - interval '91 days', 'system', 'y', '{}')`,
    );
    for (const sql of ["update touchdown.audit set action = 'z'", "truncate touchdown.audit"]) {
      await expect(owner.query(sql)).rejects.toThrow(/never changed/);
    }
    await expect(owner.query("delete from touchdown.audit")).rejects.toThrow(/never changed/);
    await owner.query("delete from touchdown.audit where action = 'y'");
    expect(await owner.query("select action from touchdown.audit")).toEqual([{ action: "x" }]);
  });
});
