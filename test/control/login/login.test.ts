import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  Browser,
  fieldOf,
  reasonOf,
  SESSION_COOKIE,
  startTestControl,
  type TestControl,
} from "../../support/control.ts";

const SYSTEM_ACTOR = { kind: "system", accountId: null, address: null, userAgent: null } as const;

let site: TestControl;
beforeAll(async () => {
  site = await startTestControl();
});
afterAll(() => site?.stop());
// A minute later no attempt limit is exhausted.
beforeEach(() => site.clock.advance(60_000));

const isIn = async (browser: Browser) => (await browser.call("GET", "/api/v1/me")).status === 200;

describe("a login", () => {
  it("makes an account with a key on plan Beta the first time, and finds it again", async () => {
    const browser = new Browser(site.url);
    expect(reasonOf(await browser.call("GET", "/api/v1/me"))).toBe("unauthorized");
    expect(await browser.login("grace", { return_to: "/keys?new=1#first" })).toBe(
      "/keys?new=1#first",
    );
    const me = await browser.call("GET", "/api/v1/me");
    expect(me.json).toMatchObject({
      account: { plan: { name: "Beta" }, disabled: false },
      people: [{ subject: "grace", name: "Grace User", email: "grace@sandbox.example" }],
      ...{ rights: [], via: "session" },
    });
    const keys = await browser.call("GET", "/api/v1/keys");
    expect(fieldOf(keys.json, "keys")).toHaveLength(1);
    const again = new Browser(site.url);
    await again.login("grace");
    const id = fieldOf(me.json, "account.id");
    expect(fieldOf((await again.call("GET", "/api/v1/me")).json, "account.id")).toBe(id);
  });

  it("gives the admin right to the users that the configuration names", async () => {
    const browser = new Browser(site.url);
    await browser.login("ada");
    const me = await browser.call("GET", "/api/v1/me");
    expect(fieldOf(me.json, "rights")).toEqual(["admin"]);
    expect((await browser.call("GET", "/api/v1/admin/accounts")).status).toBe(200);
  });

  it("takes the admin right from a user that the configuration does not name", async () => {
    const browser = new Browser(site.url);
    await browser.login("grace");
    const id = fieldOf((await browser.call("GET", "/api/v1/me")).json, "account.id");
    const grant = "update touchdown.accounts set admin = true where id = $1";
    await site.store.there.owner.query(grant, [id]);
    const rights = async () => fieldOf((await browser.call("GET", "/api/v1/me")).json, "rights");
    expect(await rights()).toEqual(["admin"]);
    // Of another account, and of an operator whose list this process does not have.
    const other = await site.store.accounts.create("other", "Beta", SYSTEM_ACTOR);
    if (other.kind === "refused") throw new Error(other.reason);
    await site.store.there.owner.query(grant, [other.value.id]);
    await browser.login("grace");
    expect(await rights()).toEqual([]);
    expect((await site.store.accounts.byId(other.value.id))?.admin).toBe(true);
  });

  it("sets cookies for this host alone, out of reach of scripts", async () => {
    const browser = new Browser(site.url);
    const back = await browser.throughProvider(await browser.startLogin(), "grace");
    const response = await browser.send(back, "GET", {});
    const cookie = response.headers.getSetCookie().find((line) => line.startsWith("__Host-td-s"));
    expect(cookie).toMatch(/; Path=\/; Max-Age=43200; HttpOnly; Secure; SameSite=Lax$/);
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  it("creates a new session id, whatever cookie the browser sent", async () => {
    const browser = new Browser(site.url);
    const planted = "P".repeat(43);
    browser.cookies.set(SESSION_COOKIE, planted);
    await browser.login("grace");
    const first = browser.cookies.get(SESSION_COOKIE);
    expect(first).not.toBe(planted);
    const attacker = new Browser(site.url);
    attacker.cookies.set(SESSION_COOKIE, planted);
    expect(await isIn(attacker)).toBe(false);
    await browser.login("grace", { fresh: true });
    expect(browser.cookies.get(SESSION_COOKIE)).not.toBe(first);
    attacker.cookies.set(SESSION_COOKIE, first ?? "");
    expect(await isIn(attacker)).toBe(false);
  });

  it("is not undone by a request that another tab sent with the cookie from before", async () => {
    const browser = new Browser(site.url);
    await browser.login("grace");
    const before = browser.cookies.get(SESSION_COOKIE);
    await browser.login("grace", { fresh: true });
    const cookie = `${SESSION_COOKIE}=${before}`;
    const late = await browser.call("GET", "/api/v1/me", undefined, { cookie });
    expect(late.status).toBe(401);
    expect(await isIn(browser)).toBe(true);
  });

  it("as another user ends the session that the browser had", async () => {
    const browser = new Browser(site.url);
    await browser.login("grace");
    const old = new Browser(site.url);
    old.cookies.set(SESSION_COOKIE, browser.cookies.get(SESSION_COOKIE) ?? "");
    for (const name of [...browser.cookies.keys()]) {
      if (!name.startsWith("__Host-")) browser.cookies.delete(name);
    }
    await browser.login("ada");
    expect(await isIn(old)).toBe(false);
    const me = await browser.call("GET", "/api/v1/me");
    expect(fieldOf(me.json, "people.0.subject")).toBe("ada");
  });

  it("can run several times in parallel in one browser, ending in any order", async () => {
    const browser = new Browser(site.url);
    const first = await browser.startLogin({ return_to: "/keys" });
    const second = await browser.startLogin({ return_to: "/plan" });
    const backs = [
      await browser.throughProvider(second, "grace"),
      await browser.throughProvider(first, "grace"),
    ];
    expect(await browser.comeBack(backs[0] ?? "")).toBe("/plan");
    expect(await browser.comeBack(backs[1] ?? "")).toBe("/keys");
    expect(await isIn(browser)).toBe(true);
  });
});

describe("a callback while the database is away", () => {
  it("leads to a page that says so, and the log has the error", async () => {
    const browser = new Browser(site.url);
    const back = await browser.throughProvider(await browser.startLogin(), "grace");
    site.store.gone = true;
    const path = await browser.comeBack(back).finally(() => {
      site.store.gone = false;
    });
    expect(path).toBe("/?login_error=unavailable");
    expect(site.logged.at(-1)).toMatch(/^failed .*DatabaseError.*\/login\/callback/);
    expect(await isIn(browser)).toBe(false);
  });
});

describe("an invalid callback", () => {
  it("works once: a replay opens no session", async () => {
    const browser = new Browser(site.url);
    const back = await browser.throughProvider(await browser.startLogin(), "grace");
    expect(await browser.comeBack(back)).toBe("/");
    await browser.call("POST", "/api/v1/logout", {});
    expect(await browser.comeBack(back)).toBe("/?login_error=login_expired");
    expect(await isIn(browser)).toBe(false);
  });

  it("is rejected in another browser, with or without a pending login of its own", async () => {
    const attacker = new Browser(site.url);
    const back = await attacker.throughProvider(await attacker.startLogin(), "grace");
    const victim = new Browser(site.url);
    expect(await victim.comeBack(back)).toBe("/?login_error=login_expired");
    await victim.startLogin();
    expect(await victim.comeBack(back)).toBe("/?login_error=login_expired");
    expect(await isIn(victim)).toBe(false);
  });

  it("with the state of another login fails, and burns that one", async () => {
    const browser = new Browser(site.url);
    const [first, second] = [await browser.startLogin(), await browser.startLogin()];
    const one = new URL(await browser.throughProvider(first, "grace"));
    const two = new URL(await browser.throughProvider(second, "grace"));
    one.searchParams.set("state", two.searchParams.get("state") ?? "");
    expect(await browser.comeBack(one.href)).toBe("/?login_error=login_failed");
    expect(await browser.comeBack(two.href)).toBe("/?login_error=login_expired");
    expect(await isIn(browser)).toBe(false);
  });

  it.each([
    ["no state", "?code=x"],
    ["an unknown state", "?code=x&state=unknown"],
    ["two states", "?code=x&state=a&state=b"],
    ["nothing", ""],
    ["rubbish", "?%ff&&&=="],
  ])("with %s logs nobody in", async (_, query) => {
    const browser = new Browser(site.url);
    await browser.startLogin();
    expect(await browser.comeBack(`${site.url}/login/callback${query}`)).toBe(
      "/?login_error=login_expired",
    );
  });

  it("with the provider's refusal, another issuer or a wrong code fails", async () => {
    const browser = new Browser(site.url);
    for (const change of [
      (params: URLSearchParams) => {
        params.delete("code");
        params.set("error", "access_denied");
      },
      (params: URLSearchParams) => params.set("iss", "https://evil.example"),
      (params: URLSearchParams) => params.set("code", "wrong"),
    ]) {
      const back = new URL(await browser.throughProvider(await browser.startLogin(), "grace"));
      change(back.searchParams);
      expect(await browser.comeBack(back.href)).toBe("/?login_error=login_failed");
    }
    expect(await isIn(browser)).toBe(false);
  });

  it.each([
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example",
    "/%09//evil.example/../..//evil.example",
    "\t//evil.example",
    "javascript:alert(1)",
    "/.//evil.example",
    "keys",
  ])("goes nowhere but to this site: %j", async (path) => {
    const browser = new Browser(site.url);
    const end = await browser.login("grace", { return_to: path });
    expect(new URL(end, site.url).origin).toBe(site.url);
    expect(end.startsWith("//")).toBe(false);
  });

  it("goes to the first page in place of a path that a URL makes too long to be kept", async () => {
    const browser = new Browser(site.url);
    // Each quotation mark takes three characters in a URL.
    const end = await browser.login("grace", { return_to: `/?${'"'.repeat(1_000)}` });
    expect(end).toBe("/");
    expect(await browser.login("grace", { return_to: `/?${'"'.repeat(500)}` })).toContain("%22");
  });
});

describe("a session", () => {
  it("ends when it lay idle, and when it is old however busy it was", async () => {
    const browser = new Browser(site.url);
    await browser.login("grace");
    site.clock.advance(29 * 60_000);
    expect(await isIn(browser)).toBe(true);
    site.clock.advance(30 * 60_000);
    const idle = await browser.call("GET", "/api/v1/me");
    expect(reasonOf(idle)).toBe("unauthorized");
    await browser.login("grace");
    for (let minutes = 0; minutes < 12 * 60 - 20; minutes += 20) {
      site.clock.advance(20 * 60_000);
      expect(await isIn(browser)).toBe(true);
    }
    site.clock.advance(20 * 60_000);
    expect(await isIn(browser)).toBe(false);
  });

  it("is not kept alive by a page's automatic requests, nor by its live stream", async () => {
    const browser = new Browser(site.url);
    await browser.login("grace");
    const cookie = `${SESSION_COOKIE}=${browser.cookies.get(SESSION_COOKIE)}`;
    const alone = { "x-unattended": "1" };
    for (let minutes = 10; minutes < 30; minutes += 10) {
      site.clock.advance(10 * 60_000);
      const headers = { cookie, "sec-fetch-site": "same-origin" };
      const stream = await fetch(`${site.url}/api/v1/live`, { headers });
      expect(stream.status).toBe(200);
      await stream.body?.cancel();
      expect((await browser.call("GET", "/api/v1/me", undefined, alone)).status).toBe(200);
    }
    site.clock.advance(10 * 60_000);
    const ended = await browser.call("GET", "/api/v1/me", undefined, alone);
    expect(reasonOf(ended)).toBe("unauthorized");
  });

  it("ends by logging out, here or everywhere, and one by one", async () => {
    const [one, two, three] = [new Browser(site.url), new Browser(site.url), new Browser(site.url)];
    for (const browser of [one, two, three]) await browser.login("grace");
    const secret = one.cookies.get(SESSION_COOKIE) ?? "";
    await one.call("POST", "/api/v1/logout", {});
    one.cookies.set(SESSION_COOKIE, secret);
    expect(await isIn(one)).toBe(false);
    const { json } = await two.call("GET", "/api/v1/sessions");
    const sessions = Object.values(Object(fieldOf(json, "sessions")));
    const other = sessions.find((session) => fieldOf(session, "current") === false);
    await one.login("grace");
    const path = `/api/v1/sessions/${String(fieldOf(other, "id"))}`;
    expect((await two.call("DELETE", path)).status).toBe(200);
    expect(await isIn(three)).toBe(false);
    await two.call("POST", "/api/v1/logout-everywhere", {});
    expect([await isIn(one), await isIn(two)]).toEqual([false, false]);
  });

  it("ends at the provider too if the browser goes there, and returns to this site", async () => {
    const browser = new Browser(site.url);
    await browser.login("grace");
    const again = new URL(
      await browser.throughProvider(await browser.startLogin(), "unknown-user"),
    );
    expect(again.searchParams.get("code")).not.toBeNull();
    const out = await browser.call("POST", "/api/v1/logout", {});
    const url = String(fieldOf(out.json, "url"));
    expect(new URL(url).origin).toBe(site.provider.issuer);
    expect(url).not.toContain("id_token_hint");
    const asked = await browser.send(url, "GET", {});
    const [, action = ""] = /action="([^"]+)"/.exec(asked.text) ?? [];
    const [, xsrf = ""] = /name="xsrf" value="([^"]+)"/.exec(asked.text) ?? [];
    const form = { "content-type": "application/x-www-form-urlencoded" };
    const gone = await browser.send(action, "POST", form, `xsrf=${xsrf}&logout=yes`);
    expect(gone.headers.get("location")).toBe(`${site.url}/`);
    const login = await browser.send(await browser.startLogin(), "GET", {});
    expect(login.headers.get("location")).toMatch(/^(?:http.*)?\/login\//);
  });

  it("is not answered for while the database is away, and is there again after", async () => {
    const browser = new Browser(site.url);
    await browser.login("grace");
    site.store.gone = true;
    const response = await browser.call("GET", "/api/v1/me");
    site.store.gone = false;
    expect([response.status, reasonOf(response)]).toEqual([503, "unavailable"]);
    expect(browser.cookies.has(SESSION_COOKIE)).toBe(true);
    expect(await isIn(browser)).toBe(true);
  });
});

describe("a recent login", () => {
  it("is needed to reveal a key", async () => {
    // One whose clock is still that of the provider, which tells when the user logged in.
    const site = await startTestControl();
    try {
      const browser = new Browser(site.url);
      await browser.login("grace");
      const keys = await browser.call("GET", "/api/v1/keys");
      const path = `/api/v1/keys/${String(fieldOf(keys.json, "keys.0.id"))}/reveal`;
      const shown = await browser.call("POST", path, {});
      expect(fieldOf(shown.json, "token")).toMatch(/^td_/);
      expect(await site.store.lastAction()).toBe("key.reveal");
      site.clock.advance(11 * 60_000);
      const late = await browser.call("POST", path, {});
      expect([late.status, reasonOf(late)]).toEqual([401, "login_again"]);
      expect(fieldOf(late.json, "error.recent_login_seconds")).toBe(600);
      expect((await browser.call("GET", "/api/v1/me")).status).toBe(200);
    } finally {
      await site.stop();
    }
  });
});
