import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { headersOf } from "../../../src/control/web/app.ts";
import {
  Browser,
  fieldOf,
  reasonOf,
  startTestControl,
  type TestControl,
} from "../../support/control.ts";

/**
 * Addresses as a proxy writes them: the client's, and the one that the client claimed before it.
 */
const CLIENT = "203.0.113.7";
const CLAIMED = "198.51.100.9";

async function latestAddress(browser: Browser): Promise<unknown> {
  return fieldOf((await browser.call("GET", "/api/v1/audit")).json, "entries.0.address");
}

/** Creates a key with this header; returns the address that the audit then holds. */
async function addressFor(browser: Browser, forwarded: string): Promise<unknown> {
  const headers = { "x-forwarded-for": forwarded };
  const made = await browser.call("POST", "/api/v1/tokens", { label: "x" }, headers);
  expect(made.status).toBe(201);
  return await latestAddress(browser);
}

/** How many of 25 logins start before one is rejected, each with this header. */
async function attemptsOf(
  site: TestControl,
  forwarded: (count: number) => string,
): Promise<number> {
  for (let count = 0; count < 25; count += 1) {
    const headers = { "x-forwarded-for": forwarded(count) };
    const response = await new Browser(site.url).call("POST", "/api/v1/login", {}, headers);
    if (reasonOf(response) === "rate_limited") return count;
  }
  return 25;
}

describe("behind a proxy that is trusted", () => {
  let site: TestControl;
  let grace: Browser;
  beforeAll(async () => {
    site = await startTestControl({ control: { trusted_proxies: ["127.0.0.0/8", "10.0.0.0/8"] } });
    grace = new Browser(site.url);
    await grace.login("grace");
  });
  afterAll(() => site?.stop());
  // A minute later no attempt limit is exhausted.
  beforeEach(() => site.clock.advance(60_000));

  it("the audit has the client's address, through a chain of such proxies too", async () => {
    expect(await addressFor(grace, CLIENT)).toBe(CLIENT);
    expect(await addressFor(grace, `${CLIENT}, 10.1.2.3`)).toBe(CLIENT);
  });

  it("what the client itself claimed before the first such proxy does not count", async () => {
    expect(await addressFor(grace, `${CLAIMED}, ${CLIENT}`)).toBe(CLIENT);
    expect(await addressFor(grace, `10.9.9.9, ${CLIENT}, 10.1.2.3`)).toBe(CLIENT);
  });

  it("each client has tries of its own, and cannot get more by claiming", async () => {
    expect(await attemptsOf(site, () => CLIENT)).toBe(20);
    expect(await attemptsOf(site, (count) => `unknown-${count}, ${CLIENT}`)).toBe(0);
    expect(await attemptsOf(site, (count) => `203.0.113.${100 + count}`)).toBe(25);
  });
});

describe("an account from many addresses", () => {
  let site: TestControl;
  beforeAll(async () => {
    site = await startTestControl({ control: { trusted_proxies: ["127.0.0.0/8"] } });
  });
  afterAll(() => site?.stop());

  it("reveals ten keys a minute all the same", async () => {
    const ada = new Browser(site.url);
    await ada.login("ada");
    const id = fieldOf((await ada.call("GET", "/api/v1/keys")).json, "keys.0.id");
    const statuses = [];
    for (let count = 0; count < 11; count += 1) {
      const from = { "x-forwarded-for": `203.0.113.${count}` };
      statuses.push((await ada.call("POST", `/api/v1/keys/${id}/reveal`, {}, from)).status);
    }
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
  });
});

describe("from a peer that is no trusted proxy", () => {
  let site: TestControl;
  let grace: Browser;
  beforeAll(async () => {
    site = await startTestControl({ control: { trusted_proxies: ["10.0.0.0/8"] } });
    grace = new Browser(site.url);
    await grace.login("grace");
  });
  afterAll(() => site?.stop());
  beforeEach(() => site.clock.advance(60_000));

  it("the audit has the peer's own address, whatever its headers claim", async () => {
    for (const claimed of [CLIENT, "10.1.2.3", `${CLIENT}, 10.1.2.3`]) {
      expect(await addressFor(grace, claimed)).toBe("127.0.0.1");
    }
  });

  it("tries are counted by the peer's own address", async () => {
    expect(await attemptsOf(site, (count) => `198.51.100.${count}`)).toBe(20);
  });
});

describe("a body announced as JSON that is empty", () => {
  let site: TestControl;
  let grace: Browser;
  beforeAll(async () => {
    site = await startTestControl();
    grace = new Browser(site.url);
    await grace.login("grace");
  });
  afterAll(() => site?.stop());

  it("is none for a DELETE, which many clients send so", async () => {
    const json = { "content-type": "application/json" };
    for (const body of [undefined, ""]) {
      const made = await grace.call("POST", "/api/v1/tokens", { label: "short-lived" });
      const path = `/api/v1/tokens/${String(fieldOf(made.json, "info.id"))}`;
      expect((await grace.call("DELETE", path, body, json)).status).toBe(200);
      expect((await grace.call("DELETE", path, body, json)).status).toBe(404);
    }
  });

  it("is refused where a route accepts one, naming what is needed", async () => {
    const empty = await grace.call("POST", "/api/v1/tokens", "");
    expect([empty.status, reasonOf(empty)]).toEqual([400, "invalid_request"]);
    expect(fieldOf(empty.json, "error.message")).toBe("the body must be a JSON object");
    expect(reasonOf(await grace.call("POST", "/api/v1/tokens", " "))).toBe("invalid_request");
  });
});

describe("strict transport security", () => {
  const headersAt = (publicUrl: string) =>
    headersOf({
      ...{ host: "127.0.0.1", port: 0, version: "test", publicUrl },
      ...{ fetchOrigins: [], trustedProxies: [], pagesFolder: "/" },
    });

  it("is required where the site is reached by https, and nowhere else", async () => {
    expect(headersAt("https://dash.example").strictTransportSecurity).toEqual({
      maxAge: 31_536_000,
    });
    expect(headersAt("http://127.0.0.1:8088").strictTransportSecurity).toBe(false);
    const secure = await startTestControl({ control: { public_url: "https://dash.example" } });
    const response = await fetch(`${secure.url}/api/v1/site`);
    await secure.stop();
    expect(response.headers.get("strict-transport-security")).toMatch(/^max-age=31536000\b/);
    const plain = await startTestControl();
    const other = await fetch(`${plain.url}/api/v1/site`);
    await plain.stop();
    expect(other.headers.get("strict-transport-security")).toBeNull();
  });
});
