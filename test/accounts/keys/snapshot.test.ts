import { describe, expect, it } from "vitest";
import type { StoredKey } from "../../../src/accounts/keys/key.ts";
import { createKeySnapshotReader, KEY_SNAPSHOT_SQL } from "../../../src/accounts/keys/snapshot.ts";
import { testDatabase } from "../../support/postgres.ts";

const testDb = await testDatabase();
const { owner } = testDb;
const edge = testDb.open(testDb.edgeUrl);
const plan = { name: "Beta", ratePerSecond: 50, burst: 100, shared: false };
const plans = new Map([[plan.name, plan]]);

/** The bytes that Postgres sends for these keys. */
const snapshot = await (async () => {
  await owner.query(
    `insert into touchdown.accounts (id, name, plan, created_at)
     select (n || '0000000-0000-4000-8000-00000000000' || n)::uuid, 'a', 'Beta', now()
     from generate_series(1, 2) n`,
  );
  await owner.query(
    `insert into touchdown.keys (id, account_id, sha256, hint, label, created_at, expires_at,
       cidrs, rate_per_second, burst)
     select ('0000000' || n || '-0000-4000-8000-ffffffffffff')::uuid,
       (1 + n / 3 || '0000000-0000-4000-8000-00000000000' || 1 + n / 3)::uuid,
       sha256(n::text::bytea), 'td_…', '', now(),
       case when n = 2 then timestamptz '2100-01-02 03:04:05.678901Z' end,
       case when n = 3 then '{10.0.0.0/8,2001:db8::/32}'::cidr[] else '{}' end,
       case when n = 4 then 0.5 end, case when n = 4 then 7 end
     from generate_series(1, 4) n`,
  );
  const chunks: Buffer[] = [];
  await edge.transaction((tx) =>
    tx.streamSnapshot(KEY_SNAPSHOT_SQL, (chunk) => void chunks.push(Buffer.from(chunk))),
  );
  return Buffer.concat(chunks);
})();

function read(chunks: readonly Buffer[], known = plans): readonly StoredKey[] {
  const keys: StoredKey[] = [];
  const reader = createKeySnapshotReader(known, ({ bytes, sha256At, idAt, ...rest }) => {
    const sha256 = Buffer.from(bytes.subarray(sha256At, sha256At + 32));
    keys.push({ ...rest, sha256, keyId: bytes.toString("hex", idAt, idAt + 16) });
  });
  for (const chunk of chunks) reader.take(chunk);
  reader.finish();
  return keys;
}

describe("key snapshot", () => {
  it("is read as the keys in the database", async () => {
    const digests = await owner.query<{ sha256: Buffer }>(
      "select sha256 from touchdown.keys order by id",
    );
    const keys = read([snapshot]);
    expect(keys.map(({ sha256 }) => sha256)).toEqual(digests.map(({ sha256 }) => sha256));
    expect(keys.map(({ keyId }) => keyId)).toEqual(
      [1, 2, 3, 4].map((n) => `0000000${n}000040008000ffffffffffff`),
    );
    expect(keys.map(({ account }) => account)).toEqual(
      [1, 1, 2, 2].map((n) => `${n}0000000-0000-4000-8000-00000000000${n}`),
    );
    expect(keys.map((key) => key.plan)).toEqual([plan, plan, plan, plan]);
    const [none, expiring, bound, slow] = keys.map(({ policy }) => policy);
    expect(none).toBeNull();
    const expiresUnixMs = Date.UTC(2100, 0, 2, 3, 4, 5, 678);
    expect(expiring).toEqual({ expiresUnixMs, networks: null, limit: null });
    expect(bound?.networks?.ranges).toEqual(["10.0.0.0/8", "2001:db8::/32"]);
    expect(slow?.limit).toEqual({ ratePerSecond: 0.5, burst: 7 });
  });

  it("is read equally for any split into chunks", () => {
    const expected = JSON.stringify(read([snapshot]));
    for (let cut = 1; cut < snapshot.length; cut += 1) {
      const chunks = [snapshot.subarray(0, cut), snapshot.subarray(cut)];
      expect(JSON.stringify(read(chunks))).toBe(expected);
    }
    const bytes = Array.from(snapshot, (_, index) => snapshot.subarray(index, index + 1));
    expect(JSON.stringify(read(bytes))).toBe(expected);
  });

  it("is rejected if it is invalid or incomplete", () => {
    expect(() => read([Buffer.alloc(100)])).toThrow("no binary copy");
    expect(() => read([snapshot.subarray(0, -2)])).toThrow("no end");
    expect(() => read([snapshot], new Map())).toThrow("plan Beta, which is not there");
    const other = Buffer.from(snapshot);
    other.writeInt16BE(8, 19);
    expect(() => read([other])).toThrow("8 fields, not 9");
    const long = Buffer.from(snapshot);
    long.writeInt32BE(1_000_000, 21);
    expect(() => read([long, Buffer.alloc(70_000)])).toThrow("longer than any can be");
  });
});
