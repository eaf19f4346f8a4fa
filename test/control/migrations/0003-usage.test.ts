import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  USAGE_SLOT_BOUNDS,
  USAGE_WIRE_BOUNDS_NS,
} from "../../../src/accounts/usage/usage-shape.ts";
import { testDatabase } from "../../support/postgres.ts";

const there = await testDatabase();
const { owner } = there;
const edge = there.open(there.edgeUrl);
const MINUTE = Date.UTC(2026, 10, 20, 10, 7);

async function makeKey(): Promise<{ readonly key: string; readonly account: string }> {
  const [row] = await owner.query<{ key: string; account: string }>(
    `with made as (insert into touchdown.accounts (name, plan, created_at)
       values ('a', 'Beta', now()) returning id)
     insert into touchdown.keys (id, account_id, sha256, hint, label, created_at)
     select gen_random_uuid(), id, sha256(id::text::bytea), 'td_…', '', now() from made
     returning id as key, account_id as account`,
  );
  if (row === undefined) throw new Error("no key was made");
  return row;
}

const filled = (length: number, value: number): number[] => new Array<number>(length).fill(value);

function rowOf(key: string, minute: number, requests: number): object {
  return {
    key,
    minute,
    requests,
    accepted: requests,
    refused: 0,
    bytes: 300 * requests,
    landed: 1,
    expired: 0,
    dropped: 0,
    wire: filled(USAGE_WIRE_BOUNDS_NS.length + 1, requests),
    slots: filled(USAGE_SLOT_BOUNDS.length + 1, 1),
    reasons: [["refused", "rate_limited", requests]],
  };
}

async function write(run: string, sequence: number, rows: readonly object[]): Promise<boolean> {
  const [response] = await edge.query<{ written: boolean }>(
    "select touchdown.edge_write_usage($1, $2, 'e1', 'fra', $3) as written",
    [run, sequence, JSON.stringify(rows)],
  );
  return response?.written ?? false;
}

const stored = (table: string, account: string) =>
  owner.query<{ at: number; requests: number; wire: number[] }>(
    `select at, requests, wire from touchdown.${table} where account_id = $1 order by at`,
    [account],
  );

describe("usage that edges write", () => {
  it("is added by the minute and by the hour, each batch once", async () => {
    const { key, account } = await makeKey();
    const run = randomUUID();
    const batch = [rowOf(key, MINUTE, 3), rowOf(key, MINUTE + 60_000, 4), rowOf(key, MINUTE, 1)];
    expect(await write(run, 1, batch)).toBe(true);
    expect(await write(run, 1, batch)).toBe(false);
    expect(await write(run, 2, [rowOf(key, MINUTE + 5_000, 10)])).toBe(true);
    const minutes = await stored("usage_minutes", account);
    expect(minutes.map(({ at, requests }) => [at, requests])).toEqual([
      [MINUTE, 14],
      [MINUTE + 60_000, 4],
    ]);
    expect(minutes[0]?.wire).toEqual(filled(USAGE_WIRE_BOUNDS_NS.length + 1, 14));
    const hours = await stored("usage_hours", account);
    expect(hours.map(({ at, requests }) => [at, requests])).toEqual([
      [Date.UTC(2026, 10, 20, 10), 18],
    ]);
    const reasons = await owner.query(
      "select kind, reason, count from touchdown.usage_reason_hours where account_id = $1",
      [account],
    );
    expect(reasons).toEqual([{ kind: "refused", reason: "rate_limited", count: 18 }]);
  });

  it("is counted once when many send the same batch at the same time", async () => {
    const { key, account } = await makeKey();
    const run = randomUUID();
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => write(run, 1, [rowOf(key, MINUTE, 5)])),
    );
    expect(responses.filter(Boolean)).toHaveLength(1);
    expect(await stored("usage_minutes", account)).toMatchObject([{ requests: 5 }]);
  });

  it("notes when a key was last used, and never moves that back", async () => {
    const { key } = await makeKey();
    const run = randomUUID();
    await write(run, 1, [rowOf(key, MINUTE, 1)]);
    await write(run, 2, [rowOf(key, MINUTE - 600_000, 1), rowOf(key, MINUTE + 60_000, 0)]);
    const uses = await owner.query("select used_at from touchdown.key_uses where key_id = $1", [
      key,
    ]);
    expect(uses).toEqual([{ used_at: MINUTE + 60_000 }]);
  });

  it("records a key as used at the time of the batch", async () => {
    const { key } = await makeKey();
    const now = async () => (await owner.query<{ at: number }>("select now() as at"))[0]?.at ?? 0;
    const before = await now();
    const minute = Math.floor(before / 60_000) * 60_000;
    await write(randomUUID(), 1, [rowOf(key, minute, 1), rowOf(key, minute + 120_000, 1)]);
    const [use] = await owner.query<{ used_at: number }>(
      "select used_at from touchdown.key_uses where key_id = $1",
      [key],
    );
    expect(use?.used_at).toBeGreaterThanOrEqual(before);
    expect(use?.used_at).toBeLessThanOrEqual(await now());
  });

  it("of a key that is not there is left out, the rest is counted", async () => {
    const { key, account } = await makeKey();
    expect(
      await write(randomUUID(), 1, [rowOf(randomUUID(), MINUTE, 1), rowOf(key, MINUTE, 2)]),
    ).toBe(true);
    expect(await stored("usage_minutes", account)).toMatchObject([{ requests: 2 }]);
  });

  it.each([
    ["a negative count", { requests: -1 }],
    ["no key", { key: null }],
    ["no minute", { minute: null }],
    ["a minute to come", { minute: Date.UTC(2100, 0) }],
    ["too few buckets", { wire: [1, 2] }],
    ["a kind of end that there is not", { reasons: [["lost", "x", 1]] }],
  ])("is refused as a whole with %s, and can come again", async (_, fault) => {
    const { key, account } = await makeKey();
    const run = randomUUID();
    const rows = [rowOf(key, MINUTE, 1), { ...rowOf(key, MINUTE + 60_000, 1), ...fault }];
    await expect(write(run, 1, rows)).rejects.toThrow();
    expect(await stored("usage_minutes", account)).toEqual([]);
    expect(await write(run, 1, rows.slice(0, 1))).toBe(true);
  });
});
