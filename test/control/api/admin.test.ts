import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  Browser,
  fieldOf,
  reasonOf,
  startTestControl,
  type TestControl,
} from "../../support/control.ts";
import { insertPlan } from "../../support/plans.ts";

let site: TestControl;
let ada: Browser;
let grace: Browser;
let graceId = "";
beforeAll(async () => {
  site = await startTestControl();
  ada = new Browser(site.url);
  grace = new Browser(site.url);
  await ada.login("ada");
});
afterAll(() => site?.stop());
beforeEach(async () => {
  // A minute later no attempt limit is exhausted.
  site.clock.advance(60_000);
  await grace.login("grace");
  graceId = String(fieldOf((await grace.call("GET", "/api/v1/me")).json, "account.id"));
});

const change = (body: object) => ada.call("PATCH", `/api/v1/admin/accounts/${graceId}`, body);

describe("an operator", () => {
  it("finds accounts by what they are called, page by page", async () => {
    const found = await ada.call("GET", "/api/v1/admin/accounts?query=grace%40sandbox");
    expect(fieldOf(found.json, "accounts")).toMatchObject([
      { id: graceId, plan: "Beta", disabled: false, rights: [], contact: "grace@sandbox.example" },
    ]);
    const seen: unknown[] = [];
    let after = "";
    for (let page = 0; page < 5; page += 1) {
      const path = `/api/v1/admin/accounts?limit=1${after === "" ? "" : `&after=${after}`}`;
      const { json } = await ada.call("GET", path);
      seen.push(fieldOf(json, "accounts.0.id"));
      const next = fieldOf(json, "next");
      if (typeof next !== "string") break;
      after = encodeURIComponent(next);
    }
    expect(new Set(seen).size).toBe(2);
    for (const odd of ["x", "1_", "-1", `1_${graceId.replaceAll("-", "g")}`]) {
      const response = await ada.call("GET", `/api/v1/admin/accounts?after=${odd}`);
      expect([odd, reasonOf(response)]).toEqual([odd, "invalid_request"]);
    }
    for (const query of ["%25", "_", "'; drop table touchdown.accounts", "%00"]) {
      const none = await ada.call("GET", `/api/v1/admin/accounts?query=${query}`);
      expect([query, none.status === 200 || reasonOf(none) === "invalid_request"]).toEqual([
        query,
        true,
      ]);
      if (none.status === 200) expect(fieldOf(none.json, "accounts")).toEqual([]);
    }
  });

  it("moves an account to another plan, which shows in its audit and its own view", async () => {
    const plan = { name: "Pro", ratePerSecond: 500, burst: 900, shared: true, rights: {} };
    await insertPlan(site.store.there.owner, plan);
    const moved = await change({ plan: "Pro" });
    expect(fieldOf(moved.json, "account")).toMatchObject({ id: graceId, plan: "Pro" });
    const mine = await grace.call("GET", "/api/v1/plan");
    expect(mine.json).toMatchObject({
      plan: { name: "Pro", rate_per_second: 500, burst: 900, shared: true },
      ...{ scope: "account", keys: 1 },
    });
    const audit = await grace.call("GET", "/api/v1/audit?limit=1");
    expect(fieldOf(audit.json, "entries.0")).toMatchObject({
      action: "account.plan",
      actor: "operator",
      // Only the operators may see from where they work.
      ...{ address: null, user_agent: null },
    });
    const [kept] = await site.store.there.owner.query(
      "select address from touchdown.audit where actor_kind = 'operator' order by id desc limit 1",
    );
    expect(kept).toEqual({ address: "127.0.0.1" });
    const plans = await ada.call("GET", "/api/v1/admin/plans");
    const named = Object.values(Object(fieldOf(plans.json, "plans")));
    expect(named.find((one) => fieldOf(one, "name") === "Pro")).toMatchObject({ accounts: 1 });
    expect(reasonOf(await change({ plan: "none" }))).toBe("invalid_request");
    await change({ plan: "Beta" });
  });

  it("disables an account: sessions and tokens end, and no login opens one", async () => {
    const token = String(
      fieldOf((await grace.call("POST", "/api/v1/tokens", { label: "t" })).json, "token"),
    );
    const bearer = { authorization: `Bearer ${token}` };
    const disabled = await change({ disabled: true });
    expect(fieldOf(disabled.json, "account.disabled")).toBe(true);
    expect(reasonOf(await grace.call("GET", "/api/v1/me"))).toBe("unauthorized");
    const byToken = await new Browser(site.url).call("GET", "/api/v1/me", undefined, bearer);
    expect([401, 403]).toContain(byToken.status);
    const edgeKeys = await site.store.there.owner.query(
      "select from touchdown.edge_keys where account_id = $1",
      [graceId],
    );
    expect(edgeKeys).toEqual([]);
    expect(await grace.login("grace")).toBe("/?login_error=disabled");
    const enabled = await change({ disabled: false });
    expect(fieldOf(enabled.json, "account.disabled")).toBe(false);
    expect(await grace.login("grace")).toBe("/");
  });

  it("changes neither a missing account nor its own admin right", async () => {
    const path = "/api/v1/admin/accounts/00000000-0000-4000-8000-000000000000";
    for (const body of [{}, { plan: "Beta" }, { disabled: true }]) {
      expect(reasonOf(await ada.call("PATCH", path, body))).toBe("not_found");
    }
    const me = String(fieldOf((await ada.call("GET", "/api/v1/me")).json, "account.id"));
    const own = await ada.call("PATCH", `/api/v1/admin/accounts/${me}`, { disabled: true });
    expect([own.status, reasonOf(own)]).toEqual([409, "conflict"]);
    expect((await ada.call("GET", "/api/v1/me")).status).toBe(200);
  });

  it("changes nothing where one of two changes is refused", async () => {
    const plan = { name: "Other", ratePerSecond: 5, burst: 9, shared: false, rights: {} };
    await insertPlan(site.store.there.owner, plan);
    expect(reasonOf(await change({ plan: "none", disabled: true }))).toBe("invalid_request");
    expect((await grace.call("GET", "/api/v1/me")).status).toBe(200);
    const me = fieldOf((await ada.call("GET", "/api/v1/me")).json, "account");
    const path = `/api/v1/admin/accounts/${String(fieldOf(me, "id"))}`;
    const own = await ada.call("PATCH", path, { plan: "Other", disabled: true });
    expect([own.status, reasonOf(own)]).toEqual([409, "conflict"]);
    expect(fieldOf((await ada.call("GET", "/api/v1/me")).json, "account")).toEqual(me);
  });

  it("sees the usage of all accounts", async () => {
    const { json } = await ada.call("GET", "/api/v1/admin/usage?range=month");
    expect(fieldOf(json, "totals")).toMatchObject({ requests: 0, landed_share: null });
    expect(reasonOf(await ada.call("GET", "/api/v1/admin/usage?range=year"))).toBe(
      "invalid_request",
    );
    const twice = await ada.call("GET", "/api/v1/admin/usage?range=day&range=hour");
    expect(reasonOf(twice)).toBe("invalid_request");
  });
});
