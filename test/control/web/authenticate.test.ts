import { afterAll, beforeAll, expect, it } from "vitest";
import {
  Browser,
  fieldOf,
  reasonOf,
  SESSION_COOKIE,
  startTestControl,
  type TestControl,
} from "../../support/control.ts";

const SYSTEM_ACTOR = { kind: "system", accountId: null, address: null, userAgent: null } as const;
const MISSING = "00000000-0000-4000-8000-000000000000";
/** The default of control.recent_login. */
const RECENT_MS = 600_000;

let site: TestControl;
beforeAll(async () => {
  site = await startTestControl();
});
afterAll(() => site?.stop());

/** A browser that logged in at the provider `agoMs` ago, on Ada's account. */
async function loggedIn(accountId: string, agoMs: number): Promise<Browser> {
  const authenticatedAtMs = site.clock.unixMs() - agoMs;
  const login = { accountId, issuer: site.provider.issuer, subject: "ada", authenticatedAtMs };
  const opened = await site.store.sessions.open(login, SYSTEM_ACTOR);
  if (opened.kind === "refused") throw new Error(opened.detail);
  const browser = new Browser(site.url);
  browser.cookies.set(SESSION_COOKIE, opened.value.secret);
  return browser;
}

/** Each route with what its description states. */
async function routes() {
  const { json } = await new Browser(site.url).call("GET", "/api/openapi.json");
  return Object.entries(Object(fieldOf(json, "paths"))).flatMap(([path, methods]) =>
    Object.entries(Object(methods)).map(([method, operation]) => ({
      ...{ path, method: method.toUpperCase(), name: `${method} ${path}` },
      access: fieldOf(operation, "x-access"),
      recentLogin: fieldOf(operation, "x-recent-login") === true,
      takesBody: fieldOf(operation, "requestBody") !== undefined,
    })),
  );
}

it("a route that needs a recent login requires one, and changes nothing without it", async () => {
  const ada = new Browser(site.url);
  await ada.login("ada");
  const { json } = await ada.call("GET", "/api/v1/me");
  const accountId = String(fieldOf(json, "account.id"));
  const keyId = String(fieldOf((await ada.call("GET", "/api/v1/keys")).json, "keys.0.id"));
  const ids = new Map([
    ["key_id", keyId],
    ["account_id", accountId],
  ]);
  const late = await loggedIn(accountId, RECENT_MS);
  const before = (await late.call("GET", "/api/v1/audit")).text;
  const guarded = (await routes()).filter(({ recentLogin }) => recentLogin);
  expect(guarded.length).toBeGreaterThan(7);
  for (const { name, method, path, takesBody } of guarded) {
    const at = path.replaceAll(/\{(\w+)\}/g, (_, part: string) => ids.get(part) ?? MISSING);
    const response = await late.call(method, at, takesBody ? {} : undefined);
    expect([name, response.status, reasonOf(response)]).toEqual([name, 401, "login_again"]);
    // The session continues.
    expect(response.headers.get("set-cookie")).toBeNull();
  }
  expect((await late.call("GET", "/api/v1/audit")).text).toBe(before);
  const soon = await loggedIn(accountId, RECENT_MS - 1);
  expect((await soon.call("POST", "/api/v1/keys", { label: "in time" })).status).toBe(201);
});

it("an Authorization header does not open an open route to another site's page", async () => {
  const open = (await routes()).filter(({ access }) => access === "open");
  expect(open.length).toBeGreaterThan(1);
  for (const authorization of ["Bearer x", "Basic eDp5", "", `Bearer tdm_${"a".repeat(64)}`]) {
    for (const { name, method, path, takesBody } of open) {
      const headers = { authorization, "sec-fetch-site": "cross-site" };
      const body = takesBody ? {} : undefined;
      const response = await new Browser(site.url).call(method, path, body, headers);
      expect([name, authorization, reasonOf(response)]).toEqual([
        name,
        authorization,
        "cross_site",
      ]);
      expect(response.headers.get("set-cookie")).toBeNull();
    }
  }
});
