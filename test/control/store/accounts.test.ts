import { describe, expect, it } from "vitest";
import { insertPlan } from "../../support/plans.ts";
import { actor, createFixture, identityOf, operator, reasonOf, value } from "./fixture.ts";

const { store, clock, there, user, loginless, atOnce } = await createFixture();

describe("registering", () => {
  it("makes an account on plan Beta with a key at the first login, then finds it", async () => {
    const identity = identityOf();
    const first = value(await store.accounts.register(identity, actor));
    expect(first.account).toMatchObject({
      name: "A User",
      plan: { name: "Beta", ratePerSecond: 50, burst: 100 },
      admin: false,
    });
    expect(first.key).toMatchObject({ state: "live", revealable: true });
    clock.advance(1_000);
    const again = value(
      await store.accounts.register({ ...identity, email: "new@x.example" }, actor),
    );
    expect(again).toMatchObject({ account: { id: first.account.id }, key: null });
    expect(await store.accounts.identities(first.account.id)).toMatchObject([
      { subject: identity.subject, email: "new@x.example", lastLoginAtMs: clock.unixMs() },
    ]);
  });

  it("keeps the name and the e-mail that a later login does not tell", async () => {
    const identity = identityOf();
    const { account } = value(await store.accounts.register(identity, actor));
    value(await store.accounts.register({ ...identity, email: null, name: null }, actor));
    const { email, name } = identity;
    expect(await store.accounts.identities(account.id)).toMatchObject([{ email, name }]);
  });

  it("creates one account from many parallel first logins", async () => {
    const identity = identityOf();
    const register = () => store.accounts.register(identity, actor);
    const all = await atOnce(
      "identities",
      Array.from({ length: 8 }, () => register),
    );
    const made = all.map(value);
    expect(new Set(made.map(({ account }) => account.id)).size).toBe(1);
    expect(made.filter(({ key }) => key !== null)).toHaveLength(1);
    expect(await store.keys.list(made[0]?.account.id ?? "")).toHaveLength(1);
  });

  it("goes by issuer and subject, never by e-mail", async () => {
    const identity = identityOf();
    const others = [
      { ...identity, issuer: "https://evil.example" },
      { ...identity, subject: "another" },
      { ...identity, issuer: `${identity.issuer}","${identity.subject}`, subject: "x" },
    ];
    const ids = new Set<string>();
    for (const one of [identity, ...others]) {
      ids.add(value(await store.accounts.register(one, actor)).account.id);
    }
    expect(ids.size).toBe(4);
  });

  it("accepts names as they are, and refuses an empty subject", async () => {
    const odd = { ...identityOf(), name: `\u0000<b>${"x".repeat(300)}`, email: null };
    const { account } = value(await store.accounts.register(odd, actor));
    expect(account.name).toHaveLength(64);
    const nameless = { ...identityOf(), name: null, email: null };
    expect(value(await store.accounts.register(nameless, actor)).account.name).toBe("Account");
    expect(reasonOf(await store.accounts.register({ ...odd, subject: "" }, actor))).toBe("invalid");
  });

  it("leaves nothing behind when the key cannot be made", async () => {
    const identity = identityOf();
    await there.owner.query(
      "alter table touchdown.keys add constraint no check (label <> 'First key') not valid",
    );
    await expect(store.accounts.register(identity, actor)).rejects.toThrow();
    await there.owner.query("alter table touchdown.keys drop constraint no");
    const sql = "select from touchdown.identities where subject = $1";
    expect(await there.owner.query(sql, [identity.subject])).toEqual([]);
    expect(value(await store.accounts.register(identity, actor)).key).not.toBeNull();
  });
});

describe("an operator", () => {
  it("disables an account: no login, no session, no token, no key on any edge", async () => {
    const identity = identityOf();
    const { account } = value(await store.accounts.register(identity, actor));
    const { issuer, subject } = identity;
    const login = { accountId: account.id, issuer, subject, authenticatedAtMs: 0 };
    const { secret } = value(await store.sessions.open(login, actor));
    const made = await store.apiTokens.create(
      account.id,
      { label: "", scope: "read", expiresAtMs: null },
      actor,
    );
    const { token } = value(made);
    value(await store.accounts.setDisabled(account.id, true, operator));
    expect(await store.sessions.touch(secret)).toBeNull();
    expect(await store.apiTokens.authenticate(token)).toBeNull();
    expect(reasonOf(await store.accounts.register(identity, actor))).toBe("disabled");
    const sql = "select from touchdown.edge_keys where account_id = $1";
    expect(await there.owner.query(sql, [account.id])).toEqual([]);
    value(await store.accounts.setDisabled(account.id, false, operator));
    expect(await there.owner.query(sql, [account.id])).toHaveLength(1);
    // What had ended stays ended.
    expect(await store.apiTokens.authenticate(token)).toBeNull();
    expect(await store.sessions.touch(secret)).toBeNull();
  });

  it("disables an account in the database by hand, to the same effect", async () => {
    const identity = identityOf();
    const { account } = value(await store.accounts.register(identity, actor));
    const login = { ...identity, accountId: account.id, authenticatedAtMs: 0 };
    const { secret } = value(await store.sessions.open(login, actor));
    const options = { label: "", scope: "read", expiresAtMs: null } as const;
    const { token } = value(await store.apiTokens.create(account.id, options, actor));
    const set = "update touchdown.accounts set disabled_at = now() where id = $1";
    await there.owner.query(set, [account.id]);
    expect(await store.sessions.touch(secret)).toBeNull();
    expect(await store.apiTokens.authenticate(token)).toBeNull();
  });

  it("changes plans, and reports a missing one", async () => {
    const { id } = await user();
    expect(reasonOf(await store.accounts.setPlan(id, "Gold", operator))).toBe("plan_unknown");
    const gold = { name: "Gold", ratePerSecond: 500, burst: 1000, shared: true, rights: {} };
    await insertPlan(there.owner, gold);
    expect(value(await store.accounts.setPlan(id, "Gold", operator)).plan).toEqual(gold);
    expect(reasonOf(await store.accounts.setPlan("x", "Gold", operator))).toBe("not_found");
    const { items } = await store.audit.list(id, { limit: 1, after: null });
    expect(items).toMatchObject([
      { action: "account.plan", detail: { plan: "Gold", was: { plan: "Beta" } } },
    ]);
  });

  it("cannot remove the last admin's right, not even by two changes in parallel", async () => {
    const [left, right] = [await user(), await user()];
    for (const { id } of [left, right]) value(await store.accounts.setAdmin(id, true, operator));
    const both = [left, right].map(
      ({ id }) =>
        () =>
          store.accounts.setAdmin(id, false, operator),
    );
    const responses = await atOnce("accounts", both);
    expect(responses.map(reasonOf).sort()).toEqual(["last_admin", null]);
    const [first] = responses;
    const last = first?.kind === "ok" ? right : left;
    expect(reasonOf(await store.accounts.setDisabled(last.id, true, operator))).toBe("last_admin");
  });

  it("renames, and finds accounts by name", async () => {
    const { id } = await loginless();
    value(await store.accounts.rename(id, " acme ", operator));
    expect((await store.accounts.byName("acme")).map((account) => account.id)).toEqual([id]);
    expect(reasonOf(await store.accounts.rename(id, " ", operator))).toBe("invalid");
    expect(reasonOf(await store.accounts.create("x", "None", operator))).toBe("plan_unknown");
  });
});

describe("the list of accounts", () => {
  it("is paged, newest first, each account once", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i += 1) {
      ids.unshift((await loginless()).id);
      if (i % 2 === 0) clock.advance(1);
    }
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page = await store.accounts.list({ search: "operator made", limit: 2, after });
      seen.push(...page.items.map(({ id }) => id));
      after = page.next;
    } while (after !== null);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.slice(0, 5).sort()).toEqual([...ids].sort());
  });

  it("has each account once also where SQL made many, at one microsecond", async () => {
    await there.owner.query(
      `insert into touchdown.accounts (name, plan, created_at)
       select 'made by SQL', 'Beta', '2026-01-31T12:00:00.123456Z' from generate_series(1, 5)`,
    );
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page = await store.accounts.list({ search: "made by SQL", limit: 2, after });
      seen.push(...page.items.map(({ id }) => id));
      after = page.next;
    } while (after !== null);
    expect([seen.length, new Set(seen).size]).toEqual([5, 5]);
  });

  it("is searched by name, login and plan; wildcards match literally", async () => {
    const identity = { ...identityOf("someone-unique"), name: "100% Ünique_" };
    const { account } = value(await store.accounts.register(identity, actor));
    for (const search of ["ünique_", "100%", "SOMEONE-unique@x", account.id]) {
      const { items } = await store.accounts.list({ search, limit: 9, after: null });
      expect(items).toMatchObject([{ id: account.id, keyCount: 1, contact: identity.email }]);
    }
    const none = await store.accounts.list({ search: "1%0", limit: 9, after: "nonsense" });
    expect(none).toEqual({ items: [], next: null });
  });
});
