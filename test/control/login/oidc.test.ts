import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createOidc, type Oidc } from "../../../src/control/login/oidc.ts";
import { Browser, reasonOf, startTestControl } from "../../support/control.ts";
import { createFakeClock, type FakeClock } from "../../support/fake-clock.ts";
import { type HostileProvider, startHostileProvider } from "../../support/hostile-provider.ts";
import { freePort } from "../../support/ports.ts";

const log = { info() {}, warn() {}, error() {} };
const AFTER = { afterLogoutUri: "http://127.0.0.1:1/", freshMs: 600_000 };
const REDIRECT = "http://127.0.0.1:1/login/callback";

let provider: HostileProvider;
let clock: FakeClock;
let oidc: Oidc;
beforeEach(async () => {
  clock = createFakeClock(1_000_000_000, Date.now());
  provider = await startHostileProvider(() => clock.unixMs());
  oidc = newOidc(provider.issuer);
});
afterEach(async () => {
  oidc.stop();
  await provider.stop();
});

function newOidc(issuer: string): Oidc {
  const options = { issuer, clientId: "td", clientSecret: "s", scope: "openid" };
  return createOidc({ clock, log }, { ...options, redirectUri: REDIRECT, ...AFTER });
}

/** A login as the provider responds now; `change` runs between redirect and return. */
async function login(fresh = false, change: () => void = () => {}) {
  const started = await oidc.startLogin(fresh);
  if (started === null) return "unavailable";
  change();
  const back = new URL(provider.answerTo(started.url));
  const done = await oidc.finish(back.search, started.attempt, fresh);
  return done.kind === "ok" ? done.proof : done.kind;
}

describe("a provider's answer", () => {
  it("is accepted when all of it is valid", async () => {
    expect(await login()).toMatchObject({
      identity: { issuer: provider.issuer, subject: "mallory", name: "Mallory", email: null },
    });
  });

  it.each([
    ["another nonce", { nonce: "other" }],
    ["no nonce", { nonce: undefined }],
    ["another audience", { aud: "other" }],
    ["another issuer", { iss: "https://evil.example" }],
    ["an end in the past", { exp: 1 }],
    ["no subject", { sub: undefined }],
  ])("with %s is refused", async (_, claims) => {
    provider.claims = claims;
    expect(await login()).toBe("failed");
  });

  it("with a token that was tampered with, or signed by another key, is refused", async () => {
    provider.tamper = (token) => {
      const [head = "", body = "", signature = ""] = token.split(".");
      const claims = JSON.parse(Buffer.from(body, "base64url").toString());
      const other = Buffer.from(JSON.stringify({ ...claims, sub: "ada" })).toString("base64url");
      return [head, other, signature].join(".");
    };
    expect(await login()).toBe("failed");
    provider.tamper = (token) => {
      const head = Buffer.from('{"alg":"none"}').toString("base64url");
      return `${head}.${token.split(".")[1]}.`;
    };
    expect(await login()).toBe("failed");
    provider.tamper = (token) => token;
    provider.forge();
    expect(await login()).toBe("failed");
  });

  it("is accepted across a change of the provider's keys, even during a login", async () => {
    expect(await login()).toMatchObject({ identity: { subject: "mallory" } });
    expect(await login(false, () => provider.rotate())).toMatchObject({
      identity: { subject: "mallory" },
    });
  });

  it("must prove its time: an old login does not count as recent", async () => {
    const hourAgo = Math.floor(clock.unixMs() / 1000) - 3600;
    provider.claims = { auth_time: hourAgo };
    expect(await login()).toMatchObject({ authenticatedAtMs: hourAgo * 1000 });
    expect(await login(true)).toBe("failed");
    provider.claims = { auth_time: undefined };
    expect(await login(true)).toBe("failed");
  });

  it("is recent without `auth_time` only if fresh, by a provider without it", async () => {
    provider.claims = { auth_time: undefined };
    expect(await login()).toMatchObject({ authenticatedAtMs: 0 });
    provider.claimsSupported = ["sub", "iss"];
    oidc = newOidc(provider.issuer);
    expect(await login()).toMatchObject({ authenticatedAtMs: 0 });
    expect(await login(true)).toMatchObject({ authenticatedAtMs: clock.unixMs() });
  });

  it("is asked to tell its time, however old", async () => {
    const started = await oidc.startLogin(false);
    const asked = new URL(started?.url ?? "").searchParams;
    expect([asked.get("max_age"), asked.get("prompt")]).toEqual(["31536000", null]);
  });

  it("holds a name of bounded length, on one line", async () => {
    provider.claims = { name: `\u0000<b>\n${"x".repeat(1000)}`, email: 7 };
    const proof = await login();
    const name = typeof proof === "string" ? proof : (proof.identity.name ?? "");
    expect(name).toMatch(/^<b>x+$/);
    expect(name).toHaveLength(256);
  });
});

describe("a provider that is away", () => {
  it("stops new logins; the next one finds it again without waiting for the back-off", async () => {
    const port = await freePort();
    oidc = newOidc(`http://127.0.0.1:${port}`);
    expect(await oidc.startLogin(false)).toBeNull();
    expect(oidc.available()).toBe(false);
    expect(oidc.counters.discoveryFailed).toBe(1);
    expect(await oidc.startLogin(false)).toBeNull();
    expect(oidc.counters.discoveryFailed).toBe(1);
    clock.advance(600);
    await oidc.startLogin(false);
    expect(oidc.counters.discoveryFailed).toBe(2);
  });

  it("is distinguished from one that denies the login", async () => {
    provider.status = 503;
    expect(await login()).toBe("unavailable");
    provider.status = 400;
    expect(await login()).toBe("failed");
  });

  it("ends no session that there is, and shows on /readyz without turning it", async () => {
    const site = await startTestControl();
    try {
      const browser = new Browser(site.url);
      await browser.login("grace");
      const url = await browser.startLogin();
      const back = await browser.throughProvider(url, "grace");
      await site.provider.stop();
      expect(await browser.comeBack(back)).toBe("/?login_error=login_unavailable");
      expect((await browser.call("GET", "/api/v1/me")).status).toBe(200);
      expect(site.control.readiness().ok).toBe(true);
    } finally {
      await site.stop();
    }
  });

  it("answers a login with the reason while it was never found", async () => {
    const issuer = `http://127.0.0.1:${await freePort()}`;
    const site = await startTestControl({ issuer: { issuer, clientSecret: "s" } });
    try {
      const response = await new Browser(site.url).call("POST", "/api/v1/login", {});
      expect([response.status, reasonOf(response)]).toEqual([503, "login_unavailable"]);
    } finally {
      await site.stop();
    }
  });
});
