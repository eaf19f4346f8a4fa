import { describe, expect, it } from "vitest";
import { encryptionKeysInUse } from "../../../src/control/store/operator-keys.ts";
import { sha256 } from "../../../src/control/store/records.ts";
import { vaultOf } from "../../support/vault.ts";
import { actor, createFixture, freshKek, plain, reasonOf, value } from "./fixture.ts";

const digest = (token: string): string => sha256(token).toString("hex");

describe("over all accounts", () => {
  it("a key is found by its text or by the start of its hash", async () => {
    const { store, user } = await createFixture();
    const { key, token } = value(await store.keys.create((await user()).id, plain, actor));
    for (const which of [token, digest(token), digest(token).slice(0, 8).toUpperCase()]) {
      expect(await store.keys.find(which)).toMatchObject([{ id: key.id, sha256: digest(token) }]);
    }
    for (const which of ["", "%", digest(token).slice(0, 7), "td_test_none"]) {
      expect(await store.keys.find(which)).toEqual([]);
    }
  });

  it("the good keys are listed in pages, each once", async () => {
    const { store, user, clock } = await createFixture();
    const account = await user();
    for (let i = 0; i < 4; i += 1) value(await store.keys.create(account.id, plain, actor));
    const [first] = await store.keys.list(account.id);
    value(await store.keys.revoke(account.id, first?.id ?? "", actor));
    clock.advance(5);
    await user();
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page = await store.keys.listAll({ limit: 2, after });
      seen.push(...page.items.map(({ id }) => id));
      expect(
        page.items.every(({ plan, accountName }) => `${plan}${accountName}` === "BetaA User"),
      ).toBe(true);
      after = page.next;
    } while (after !== null);
    expect([seen.length, new Set(seen).size]).toEqual([5, 5]);
  });

  it("keys that SQL made at one microsecond are listed to the end", async () => {
    const { store, there, loginless } = await createFixture();
    const { id } = await loginless();
    await there.owner.query(
      `insert into touchdown.keys (id, account_id, sha256, hint, label, created_at)
       select gen_random_uuid(), $1, sha256(n::text::bytea), 'td_…', '',
         '2026-01-31T12:00:00.123456Z' from generate_series(1, 5) n`,
      [id],
    );
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page = await store.keys.listAll({ limit: 2, after });
      seen.push(...page.items.map((key) => key.id));
      after = page.next;
    } while (after !== null && seen.length < 10);
    expect([seen.length, new Set(seen).size]).toEqual([5, 5]);
  });
});

describe("a new key-encryption key", () => {
  it("seals everything anew without a change for edges; the old key can go", async () => {
    const fixture = await createFixture();
    const { there, user } = fixture;
    const [old, next] = [freshKek(), freshKek()];
    const account = await user();
    const before = fixture.withVault(vaultOf(`old:${old}`));
    const { key, token } = value(await before.keys.create(account.id, plain, actor));
    const revision = () => there.owner.query("select revision from touchdown.key_revision");
    const heard = await revision();
    const both = fixture.withVault(vaultOf(`next:${next},old:${old}`));
    // The account's first key was sealed with a third key, which is missing here.
    expect(await both.keys.missingEncryptionKeys()).toEqual(["one"]);
    expect(await both.keys.rewrap()).toEqual({ rewrapped: 1, failed: 1 });
    expect(await both.keys.rewrap()).toEqual({ rewrapped: 0, failed: 1 });
    expect(await revision()).toEqual(heard);
    const after = fixture.withVault(vaultOf(`next:${next}`));
    expect(value(await after.keys.reveal(account.id, key.id, actor)).token).toBe(token);
    expect(reasonOf(await before.keys.reveal(account.id, key.id, actor))).toBe("vault");
    expect(await encryptionKeysInUse(fixture.deps)).toEqual(["next", "one"]);
  });

  it("handles more keys than fit into one step", async () => {
    const fixture = await createFixture();
    const { there, store, user } = fixture;
    const account = await user();
    await there.owner.query(
      `insert into touchdown.keys (id, account_id, sha256, hint, label, created_at,
         ciphertext, nonce, kek_id)
       select gen_random_uuid(), $1, sha256(n::text::bytea), '', '', now(), '', $2, 'gone'
       from generate_series(1, 1200) n`,
      [account.id, Buffer.alloc(12)],
    );
    expect(await store.keys.rewrap()).toEqual({ rewrapped: 0, failed: 1200 });
  });
});
