import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { clientKeyOf } from "../../../src/accounts/keys/client-key.ts";
import { looksMistyped } from "../../../src/accounts/keys/format.ts";
import { publicKeySha256 } from "../../../src/accounts/keys/public-key.ts";
import {
  KEY_LIFE_MS_MAX,
  KEY_RECORDS_SHOWN_MAX,
  KEYS_PER_ACCOUNT_MAX,
} from "../../../src/control/limits.ts";
import { hintOf, keysMax } from "../../../src/control/store/keys.ts";
import { sha256 } from "../../../src/control/store/records.ts";
import { insertPlan } from "../../support/plans.ts";
import { vaultOf } from "../../support/vault.ts";
import { actor, createFixture, freshKek, plain, reasonOf, value } from "./fixture.ts";

const fixture = await createFixture();
const { store, clock, there, user } = fixture;
const DAY_MS = 86_400_000;

const revision = async (): Promise<number> =>
  (await there.owner.query<{ n: number }>("select revision as n from touchdown.key_revision"))[0]
    ?.n ?? 0;

describe("a key", () => {
  it("is made in our form, and kept as a hash and a sealed text alone", async () => {
    const { id } = await user();
    const { key, token } = value(await store.keys.create(id, { ...plain, label: "bot" }, actor));
    expect(token).toMatch(/^td_test_[0-9A-Za-z]{33}$/);
    expect(looksMistyped(token)).toBe(false);
    expect(key).toMatchObject({
      label: "bot",
      state: "live",
      hint: hintOf(token),
      revealable: true,
    });
    const [row] = await there.owner.query("select * from touchdown.keys where id = $1", [key.id]);
    expect(row).toMatchObject({ sha256: sha256(token) });
    const text = JSON.stringify(row, (_, field) =>
      field?.type === "Buffer" ? Buffer.from(field.data).toString("latin1") : field,
    );
    expect(text).not.toContain(token.slice(8, -4));
  });

  it("has its client key, and one of before gets it when it is shown", async () => {
    const { id } = await user();
    const { key, token } = value(await store.keys.create(id, plain, actor));
    const read = async () => {
      const sql = "select client_sha256 as client from touchdown.keys where id = $1";
      return (await there.owner.query<{ client: Buffer | null }>(sql, [key.id]))[0]?.client;
    };
    const expected = publicKeySha256(clientKeyOf(token));
    expect(await read()).toEqual(expected);
    await there.owner.query("update touchdown.keys set client_sha256 = null where id = $1", [
      key.id,
    ]);
    value(await store.keys.reveal(id, key.id, actor));
    expect(await read()).toEqual(expected);
    const rotated = value(await store.keys.rotate(id, key.id, 0, actor));
    const sql = "select sha256 from touchdown.edge_client_keys where key_id = any($1)";
    expect(await there.owner.query(sql, [[key.id, rotated.key.id]])).toEqual([
      { sha256: publicKeySha256(clientKeyOf(rotated.token)) },
    ]);
  });

  it("is revealed to its account, with an entry in the audit", async () => {
    const { id } = await user();
    const { key, token } = value(await store.keys.create(id, plain, actor));
    expect(value(await store.keys.reveal(id, key.id, actor)).token).toBe(token);
    const { items } = await store.audit.list(id, { limit: 1, after: null });
    expect(items).toMatchObject([{ action: "key.reveal", detail: { keyId: key.id }, actor }]);
    expect(JSON.stringify(items)).not.toContain(token);
  });

  it("does not exist for another account, whatever the request", async () => {
    const [mine, other] = [await user(), await user()];
    const { key } = value(await store.keys.create(mine.id, plain, actor));
    const responses = await Promise.all([
      store.keys.reveal(other.id, key.id, actor),
      store.keys.revoke(other.id, key.id, actor),
      store.keys.rotate(other.id, key.id, 0, actor),
      store.keys.change(other.id, key.id, { label: "x" }, actor),
      store.keys.revoke(other.id, "1 or 1=1", actor),
      store.keys.reveal("nobody", key.id, actor),
    ]);
    expect(responses.map(reasonOf)).toEqual(new Array(6).fill("not_found"));
    expect(await store.keys.byId(other.id, key.id)).toBeNull();
    expect((await store.keys.byId(mine.id, key.id))?.state).toBe("live");
  });

  it("cannot be revealed without its key-encryption key; everything else works", async () => {
    const { id } = await user();
    const { key } = value(await store.keys.create(id, plain, actor));
    const missing = fixture.withVault(vaultOf(`two:${freshKek()}`));
    const wrong = fixture.withVault(vaultOf(`one:${freshKek()}`));
    expect(await missing.keys.reveal(id, key.id, actor)).toMatchObject({
      reason: "vault",
      detail: "the key-encryption key one is not on the control host",
    });
    expect(reasonOf(await wrong.keys.reveal(id, key.id, actor))).toBe("vault");
    expect((await missing.keys.list(id)).map((one) => one.id)).toContain(key.id);
    expect(value(await missing.keys.revoke(id, key.id, actor)).state).toBe("revoked");
  });

  it("cannot be revealed with the sealed text of another one in its place", async () => {
    const { id } = await user();
    const left = value(await store.keys.create(id, plain, actor)).key;
    const right = value(await store.keys.create(id, plain, actor)).key;
    await there.owner.query(
      `update touchdown.keys k set ciphertext = o.ciphertext, nonce = o.nonce
       from touchdown.keys o where k.id = $1 and o.id = $2`,
      [left.id, right.id],
    );
    expect(reasonOf(await store.keys.reveal(id, left.id, actor))).toBe("vault");
    // Nor with another text that was sealed for this key.
    const { ciphertext, nonce } = fixture.deps.vault.seal("td_x", {
      accountId: id,
      keyId: left.id,
    });
    const put = "update touchdown.keys set ciphertext = $2, nonce = $3 where id = $1";
    await there.owner.query(put, [left.id, ciphertext, nonce]);
    expect(reasonOf(await store.keys.reveal(id, left.id, actor))).toBe("vault");
  });
});

describe("the number of keys", () => {
  it("is bounded, also when all are created in parallel", async () => {
    const account = await user();
    const most = keysMax(account.plan);
    const responses = await Promise.all(
      Array.from({ length: most + 5 }, () => store.keys.create(account.id, plain, actor)),
    );
    // One key was created with the account.
    expect(responses.filter(({ kind }) => kind === "ok")).toHaveLength(most - 1);
    expect(new Set(responses.map(reasonOf))).toEqual(new Set([null, "too_many"]));
    const [first] = await store.keys.list(account.id);
    value(await store.keys.revoke(account.id, first?.id ?? "", actor));
    expect(reasonOf(await store.keys.create(account.id, plain, actor))).toBeNull();
  });

  it("may be so large that the list shows live keys alone, and all of them", async () => {
    const { id } = await user();
    const [first] = await store.keys.list(id);
    value(await store.keys.revoke(id, first?.id ?? "", actor));
    expect(await store.keys.list(id)).toHaveLength(1);
    await there.owner.query(
      `insert into touchdown.keys (id, account_id, sha256, hint, label, created_at)
       select gen_random_uuid(), $1, sha256(('list ' || n)::bytea), 'td_…', '', now()
       from generate_series(1, $2::int) n`,
      [id, KEY_RECORDS_SHOWN_MAX + 1],
    );
    const states = (await store.keys.list(id)).map(({ state }) => state);
    expect(states).toEqual(Array(KEY_RECORDS_SHOWN_MAX + 1).fill("live"));
  });

  it("is what the plan grants", () => {
    const plan = { name: "x", ratePerSecond: 1, burst: 1, shared: false };
    expect(keysMax({ ...plan, rights: { keys_max: 3 } })).toBe(3);
    expect(keysMax({ ...plan, rights: { keys_max: "many" } })).toBe(20);
  });
});

describe("changes", () => {
  it("of label, networks, limit and end are kept", async () => {
    const { id } = await user();
    const { key } = value(await store.keys.create(id, plain, actor));
    const expiresAtMs = clock.unixMs() + DAY_MS;
    const wanted = { label: " b ", cidrs: ["203.0.113.7/24", "2001:db8::/32"], expiresAtMs };
    const changed = value(
      await store.keys.change(id, key.id, { ...wanted, ratePerSecond: 5, burst: 10 }, actor),
    );
    expect(changed).toMatchObject({
      label: "b",
      cidrs: ["203.0.113.0/24", "2001:db8::/32"],
      expiresAtMs,
      ratePerSecond: 5,
      burst: 10,
    });
    expect(await store.keys.byId(id, key.id)).toEqual(changed);
    clock.advance(DAY_MS);
    expect((await store.keys.byId(id, key.id))?.state).toBe("expired");
    expect(reasonOf(await store.keys.change(id, key.id, { label: "x" }, actor))).toBe("key_ended");
    expect(reasonOf(await store.keys.reveal(id, key.id, actor))).toBe("key_ended");
  });

  it("of networks, limit or expiry reaches the edges; a change of the label does not", async () => {
    const { id } = await user();
    const { key } = value(await store.keys.create(id, plain, actor));
    const sql = `select expires_at, cidrs, rate_per_second, burst
      from touchdown.edge_keys where key_id = $1`;
    let seen: object = { expires_at: null, cidrs: [], rate_per_second: null, burst: null };
    const expiresAtMs = clock.unixMs() + 100 * DAY_MS;
    const changes = [
      [{ cidrs: ["203.0.113.7/24"] }, { cidrs: ["203.0.113.0/24"] }],
      [{ expiresAtMs }, { expires_at: expiresAtMs }],
      [
        { ratePerSecond: 5, burst: 10 },
        { rate_per_second: 5, burst: 10 },
      ],
      [{ ratePerSecond: 6 }, { rate_per_second: 6 }],
      [{ burst: 11 }, { burst: 11 }],
    ] as const;
    for (const [change, shown] of changes) {
      const before = await revision();
      value(await store.keys.change(id, key.id, change, actor));
      expect([change, await revision()]).toEqual([change, before + 1]);
      seen = { ...seen, ...shown };
      expect(await there.owner.query(sql, [key.id])).toEqual([seen]);
    }
    const before = await revision();
    value(await store.keys.change(id, key.id, { label: "renamed" }, actor));
    expect(await revision()).toBe(before);
  });

  it("are in the audit with what the changed options were before", async () => {
    const { id } = await user();
    const limit = { ratePerSecond: 5, burst: 10 };
    const wanted = { ...plain, ...limit, label: "bot", cidrs: ["203.0.113.0/24"] };
    const { key } = value(await store.keys.create(id, wanted, actor));
    const change = { cidrs: ["198.51.100.7"], ratePerSecond: null, burst: null };
    value(await store.keys.change(id, key.id, change, actor));
    const { items } = await store.audit.list(id, { limit: 1, after: null });
    expect(items[0]?.detail).toEqual({
      ...{ keyId: key.id, hint: key.hint, label: "bot" },
      ...{ cidrs: ["198.51.100.7/32"], ratePerSecond: null, burst: null },
      was: { cidrs: ["203.0.113.0/24"], ...limit },
    });
  });

  it("leave a limit alone that a lowered plan would not allow any more", async () => {
    const { id } = await user();
    const wanted = { ...plain, ratePerSecond: 50, burst: 100 };
    const { key } = value(await store.keys.create(id, wanted, actor));
    const small = { name: "Small", ratePerSecond: 1, burst: 1, shared: false, rights: {} };
    await insertPlan(there.owner, small);
    value(await store.accounts.setPlan(id, "Small", actor));
    expect(value(await store.keys.change(id, key.id, { label: "x" }, actor)).burst).toBe(100);
    expect(reasonOf(await store.keys.change(id, key.id, { burst: 99 }, actor))).toBe("invalid");
  });

  it("are refused for a disabled account, ending a key aside", async () => {
    const { id } = await user();
    const { key } = value(await store.keys.create(id, plain, actor));
    value(await store.accounts.setDisabled(id, true, actor));
    const responses = [
      await store.keys.create(id, plain, actor),
      await store.keys.reveal(id, key.id, actor),
      await store.keys.rotate(id, key.id, 0, actor),
    ];
    expect(responses.map(reasonOf)).toEqual(["disabled", "disabled", "disabled"]);
    expect(reasonOf(await store.keys.revoke(id, key.id, actor))).toBeNull();
  });
});

describe("rotation", () => {
  it("gives a new key with the same options, and the old one ends after the overlap", async () => {
    const { id } = await user();
    const options = { label: "bot", cidrs: ["10.0.0.0/8"], ratePerSecond: 5, burst: 5 };
    const old = value(
      await store.keys.create(id, { ...options, expiresAtMs: clock.unixMs() + 9 * DAY_MS }, actor),
    ).key;
    clock.advance(DAY_MS);
    const fresh = value(await store.keys.rotate(id, old.id, 3_600_000, actor));
    expect(fresh.key).toMatchObject({
      ...options,
      rotatedFrom: old.id,
      expiresAtMs: clock.unixMs() + 9 * DAY_MS,
    });
    const during = await store.keys.byId(id, old.id);
    expect(during).toMatchObject({ state: "live", expiresAtMs: clock.unixMs() + 3_600_000 });
    expect(value(await store.keys.reveal(id, fresh.key.id, actor)).token).toBe(fresh.token);
    clock.advance(3_600_000);
    expect((await store.keys.byId(id, old.id))?.state).toBe("expired");
  });

  it("of a key that was prolonged gives none that ends later than a key may", async () => {
    const { id } = await user();
    const longest = () => clock.unixMs() + KEY_LIFE_MS_MAX;
    const { key } = value(await store.keys.create(id, { ...plain, expiresAtMs: longest() }, actor));
    clock.advance(DAY_MS);
    value(await store.keys.change(id, key.id, { expiresAtMs: longest() }, actor));
    const fresh = value(await store.keys.rotate(id, key.id, 0, actor));
    expect(fresh.key.expiresAtMs).toBe(longest());
    expect(value(await store.keys.change(id, fresh.key.id, { label: "bot" }, actor)).label).toBe(
      "bot",
    );
  });

  it("without an overlap revokes immediately, and never extends a lifetime", async () => {
    const { id } = await user();
    const expiresAtMs = clock.unixMs() + 1_000;
    const short = value(await store.keys.create(id, { ...plain, expiresAtMs }, actor)).key;
    value(await store.keys.rotate(id, short.id, DAY_MS, actor));
    expect((await store.keys.byId(id, short.id))?.expiresAtMs).toBe(expiresAtMs);
    const other = value(await store.keys.create(id, plain, actor)).key;
    value(await store.keys.rotate(id, other.id, 0, actor));
    expect((await store.keys.byId(id, other.id))?.state).toBe("revoked");
    expect(reasonOf(await store.keys.rotate(id, other.id, 0, actor))).toBe("key_ended");
    for (const overlapMs of [-1, 30 * DAY_MS + 1, Number.NaN]) {
      const odd = value(await store.keys.create(id, plain, actor)).key;
      expect(reasonOf(await store.keys.rotate(id, odd.id, overlapMs, actor))).toBe("invalid");
    }
  });

  it("of a key that was rotated before is refused, with the name of its successor", async () => {
    const { id } = await user();
    const { key } = value(await store.keys.create(id, { ...plain, label: "bot" }, actor));
    expect(key.replacedBy).toBeNull();
    const next = value(await store.keys.rotate(id, key.id, DAY_MS, actor)).key;
    const again = await store.keys.rotate(id, key.id, 0, actor);
    expect(again).toMatchObject({ kind: "refused", reason: "key_replaced" });
    if (again.kind === "refused") expect(again.detail).toContain(next.hint);
    const rows = await store.keys.list(id);
    const replaced = rows.map(({ id: of, replacedBy }) => [of, replacedBy]);
    expect(replaced).toContainEqual([key.id, { id: next.id, hint: next.hint }]);
    expect(replaced).toContainEqual([next.id, null]);
    expect((await store.keys.byId(id, key.id))?.state).toBe("live");
    // The successor lives as long as the key that it replaced would have lived.
    const third = value(await store.keys.rotate(id, next.id, DAY_MS, actor)).key;
    expect(third.expiresAtMs).toBeNull();
  });

  it("is refused for a rotated key also when its successor is revoked", async () => {
    const { id } = await user();
    const { key } = value(await store.keys.create(id, plain, actor));
    const next = value(await store.keys.rotate(id, key.id, DAY_MS, actor)).key;
    value(await store.keys.revoke(id, next.id, actor));
    expect(reasonOf(await store.keys.rotate(id, key.id, DAY_MS, actor))).toBe("key_replaced");
  });

  it("leaves at most twice the allowed number of valid keys, also in parallel", async () => {
    const { id } = await user();
    for (let count = 1; count < KEYS_PER_ACCOUNT_MAX; count += 1) {
      value(await store.keys.create(id, plain, actor));
    }
    const first = await store.keys.list(id);
    const rotate = (key: { readonly id: string }) => store.keys.rotate(id, key.id, DAY_MS, actor);
    const fresh = await Promise.all(first.slice(3).map(rotate));
    // Three more fit, while 20 keys that were not rotated yet request it.
    const rest = [...first.slice(0, 3), ...fresh.map((one) => value(one).key)];
    const reasons = (await Promise.all(rest.map(rotate))).map(reasonOf);
    expect(reasons.filter((reason) => reason === null)).toHaveLength(3);
    expect(new Set(reasons)).toEqual(new Set([null, "too_many"]));
    const live = (await store.keys.list(id)).filter(({ state }) => state === "live");
    expect(live).toHaveLength(2 * KEYS_PER_ACCOUNT_MAX);
  });

  it("with an overlap creates one new key from parallel requests", async () => {
    const { id } = await user();
    const { key } = value(await store.keys.create(id, plain, actor));
    const rotate = () => store.keys.rotate(id, key.id, DAY_MS, actor);
    const reasons = (await Promise.all([rotate(), rotate(), rotate()])).map(reasonOf);
    expect(reasons.toSorted()).toEqual(["key_replaced", "key_replaced", null]);
  });

  it("without an overlap creates one new key from parallel requests", async () => {
    const { id } = await user();
    const { key } = value(await store.keys.create(id, plain, actor));
    const rotate = () => store.keys.rotate(id, key.id, 0, actor);
    const reasons = (
      await fixture.atOnce(
        "keys",
        Array.from({ length: 5 }, () => rotate),
      )
    ).map(reasonOf);
    expect(reasons.filter((reason) => reason === "key_ended")).toHaveLength(4);
    const heirs = (await store.keys.list(id)).filter(({ rotatedFrom }) => rotatedFrom === key.id);
    expect(heirs).toHaveLength(1);
  });
});

describe("revoking", () => {
  it("raises the revision and removes the key from the edges' view, once", async () => {
    const { id } = await user();
    const { key } = value(await store.keys.create(id, plain, actor));
    const before = await revision();
    const revoke = () => store.keys.revoke(id, key.id, actor);
    const [first] = (await fixture.atOnce("keys", [revoke, revoke, revoke])).map(value);
    clock.advance(DAY_MS);
    const again = value(await store.keys.revoke(id, key.id, actor));
    expect(again.revokedAtMs).toBe(first?.revokedAtMs);
    expect(await revision()).toBe(before + 1);
    const { items } = await store.audit.list(id, { limit: 50, after: null });
    expect(items.filter(({ action }) => action === "key.revoke")).toHaveLength(1);
    const sql = "select key_id from touchdown.edge_keys where key_id = $1";
    expect(await there.owner.query(sql, [key.id])).toEqual([]);
    expect(reasonOf(await store.keys.revoke(id, randomUUID(), actor))).toBe("not_found");
  });
});
