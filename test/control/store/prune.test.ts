import { expect, it } from "vitest";
import { createFixture } from "./fixture.ts";

const { store, there, user } = await createFixture();

const count = async (table: string): Promise<number> =>
  (await there.owner.query<{ n: number }>(`select count(*) as n from touchdown.${table}`))[0]?.n ??
  0;

it("removes what has expired, in several steps, and nothing else", async () => {
  const { id } = await user();
  const zeros = (length: number): string => `array_fill(0::bigint, array[${length}])`;
  await there.owner.query(
    `insert into touchdown.usage_minutes
     select $1, now() - n * interval '10 minutes', gen_random_uuid(), 'e', 'r', 1, 1, 0, 0, 0, 0, 0,
       ${zeros(32)}, ${zeros(20)}
     from generate_series(1, 12000) n`,
    [id],
  );
  await there.owner.query(
    `insert into touchdown.audit (at, account_id, actor_kind, action, detail)
     select now() - d * interval '1 day', $1, 'system', 'x', '{}' from unnest(array[399, 401]) d`,
    [id],
  );
  await there.owner.query(
    "update touchdown.key_changes set at = now() - interval '8 days' where kind = 'key'",
  );
  const [audited, changed] = [await count("audit"), await count("key_changes")];
  expect(changed).toBe(1);
  // 35 days of ten-minute rows are kept; the row exactly at the limit may fall either way.
  const gone = await store.prune();
  expect(Math.abs((await count("usage_minutes")) - 35 * 144)).toBeLessThanOrEqual(1);
  expect(await count("audit")).toBe(audited - 1);
  expect(await count("key_changes")).toBe(0);
  expect(Math.abs(gone - (12_000 - 35 * 144) - 2)).toBeLessThanOrEqual(1);
  expect(await store.prune()).toBeLessThanOrEqual(1);
  // An edge that was offline for longer sees that it must read everything.
  const [row] = await there.owner.query<{ revision: number; oldest: number }>(
    "select * from touchdown.edge_revision",
  );
  expect(row?.oldest).toBe((row?.revision ?? 0) + 1);
});
