import { describe, expect, it } from "vitest";
import { generateToken } from "../../../src/accounts/keys/format.ts";
import { keysMax } from "../../../src/control/store/keys.ts";
import { actor, createFixture, plain, reasonOf, value } from "./fixture.ts";

const { store, user, loginless, there, atOnce } = await createFixture();

describe("linking", () => {
  it("moves a key of an account without logins, and its new owner can reveal it", async () => {
    const [from, to] = [await loginless(), await user()];
    const { key, token } = value(await store.keys.create(from.id, plain, actor));
    expect(value(await store.keys.link(to.id, token, actor))).toMatchObject({
      id: key.id,
      accountId: to.id,
    });
    expect(value(await store.keys.reveal(to.id, key.id, actor)).token).toBe(token);
    expect(reasonOf(await store.keys.reveal(from.id, key.id, actor))).toBe("not_found");
    const told = await store.audit.list(from.id, { limit: 1, after: null });
    expect(told.items).toMatchObject([{ action: "key.moved", detail: { to: to.id } }]);
    const seen = await there.owner.query(
      "select account_id from touchdown.edge_keys where key_id = $1",
      [key.id],
    );
    expect(seen).toEqual([{ account_id: to.id }]);
  });

  it("answers the same to an unknown, owned, ended or disabled account's key", async () => {
    const [to, owner] = [await user(), await user()];
    const make = async () => {
      const account = await loginless();
      return { account, ...value(await store.keys.create(account.id, plain, actor)) };
    };
    const owned = value(await store.keys.create(owner.id, plain, actor));
    const [ended, disabled] = [await make(), await make()];
    value(await store.keys.revoke(ended.account.id, ended.key.id, actor));
    value(await store.accounts.setDisabled(disabled.account.id, true, actor));
    const tokens = [
      generateToken("test"),
      owned.token,
      ended.token,
      disabled.token,
      "x".repeat(500),
    ];
    const responses = [];
    for (const token of tokens) responses.push(await store.keys.link(to.id, token, actor));
    expect(new Set(responses.map((response) => JSON.stringify(response)))).toEqual(
      new Set(['{"kind":"refused","reason":"not_found","detail":"this key cannot be linked"}']),
    );
    const { items } = await store.audit.list(to.id, { limit: 5, after: null });
    expect(items.map(({ action, detail }) => [action, detail["why"]])).toEqual(
      ["unknown", "disabled", "ended", "owned", "unknown"].map((why) => ["key.link_refused", why]),
    );
    expect((await store.keys.byId(owner.id, owned.key.id))?.state).toBe("live");
  });

  it("gives a key to one of two accounts that link it in parallel", async () => {
    const [from, left, right] = [await loginless(), await user(), await user()];
    const { token } = value(await store.keys.create(from.id, plain, actor));
    const both = [left, right].map(
      ({ id }) =>
        () =>
          store.keys.link(id, token, actor),
    );
    const responses = await atOnce("keys", both);
    expect(responses.map(reasonOf).sort()).toEqual(["not_found", null]);
  });

  it("of one's own key changes nothing, and holds the bound on keys", async () => {
    const [from, to] = [await loginless(), await user()];
    const own = value(await store.keys.create(to.id, plain, actor));
    expect(value(await store.keys.link(to.id, own.token, actor)).id).toBe(own.key.id);
    while ((await store.keys.list(to.id)).length < keysMax(to.plan)) {
      value(await store.keys.create(to.id, plain, actor));
    }
    const { token } = value(await store.keys.create(from.id, plain, actor));
    expect(reasonOf(await store.keys.link(to.id, token, actor))).toBe("too_many");
  });
});
