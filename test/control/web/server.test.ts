import { connect } from "node:net";
import { tmpdir } from "node:os";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CONTROL_BODY_BYTES_MAX, EVENT_STREAM_PERIOD_MS } from "../../../src/control/limits.ts";
import { createAttemptLimiter, LIMITS } from "../../../src/control/web/attempt-limiter.ts";
import type { Authenticator } from "../../../src/control/web/authenticate.ts";
import { createWebServer } from "../../../src/control/web/server.ts";
import {
  Browser,
  fieldOf,
  reasonOf,
  SESSION_COOKIE,
  startTestControl,
  type TestControl,
} from "../../support/control.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { silent } from "../../support/postgres.ts";
import { stub } from "../../support/stub.ts";

let site: TestControl;
let ada: Browser;
let grace: Browser;
beforeAll(async () => {
  // The tests advance its clock beyond that of the provider, which tells when a user logged in.
  site = await startTestControl({ control: { recent_login: "24h" } });
  ada = new Browser(site.url);
  grace = new Browser(site.url);
});
afterAll(() => site?.stop());
beforeEach(async () => {
  // A minute later no attempt limit is exhausted.
  site.clock.advance(60_000);
  await Promise.all([ada.login("ada"), grace.login("grace")]);
});

async function firstKey(browser: Browser): Promise<string> {
  return String(fieldOf((await browser.call("GET", "/api/v1/keys")).json, "keys.0.id"));
}

/** Every operation of the document, with what a caller needs to call it. */
async function operations() {
  const { json } = await new Browser(site.url).call("GET", "/api/openapi.json");
  const paths = Object.entries(Object(fieldOf(json, "paths")));
  return paths.flatMap(([path, methods]) =>
    Object.entries(Object(methods)).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      access: String(fieldOf(operation, "x-access")),
      name: `${method.toUpperCase()} ${path}`,
      takesBody: fieldOf(operation, "requestBody") !== undefined,
    })),
  );
}

describe("every route that is not open", () => {
  it("refuses who is not known, and who brings a wrong session or token", async () => {
    for (const { name, method, path, access, takesBody } of await operations()) {
      if (access === "open") continue;
      const at = path.replaceAll(/\{\w+\}/g, "00000000-0000-4000-8000-000000000000");
      const body = takesBody ? {} : undefined;
      const anonymous = await new Browser(site.url).call(method, at, body);
      expect([name, anonymous.status, reasonOf(anonymous)]).toEqual([name, 401, "unauthorized"]);
      const forger = new Browser(site.url);
      forger.cookies.set(SESSION_COOKIE, "A".repeat(43));
      expect([name, reasonOf(await forger.call(method, at, body))]).toEqual([name, "unauthorized"]);
      const headers = { authorization: `Bearer tdm_${"a".repeat(64)}` };
      const guessed = await new Browser(site.url).call(method, at, body, headers);
      expect([name, reasonOf(guessed)]).toEqual([name, "unauthorized"]);
    }
  });

  it("changes nothing for another site's page, whatever cookies the browser sends", async () => {
    const foreign: Readonly<Record<string, string>>[] = [
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "none" },
      { origin: "https://evil.example" },
      { origin: "null" },
      { origin: `${site.url}.evil.example` },
    ];
    for (const { name, method, path, takesBody } of await operations()) {
      if (method === "GET") continue;
      const at = path.replaceAll(/\{\w+\}/g, "00000000-0000-4000-8000-000000000000");
      for (const headers of foreign) {
        const answer = await grace.call(method, at, takesBody ? {} : undefined, headers);
        expect([name, headers, reasonOf(answer)]).toEqual([name, headers, "cross_site"]);
      }
      const json = takesBody ? { "content-type": "application/json" } : {};
      const silent = await grace.send(`${site.url}${at}`, method, json, takesBody ? {} : undefined);
      expect([name, reasonOf(silent)]).toEqual([name, "cross_site"]);
    }
    expect((await grace.call("GET", "/api/v1/me")).status).toBe(200);
  });

  it("does nothing with another account's ids", async () => {
    const keyId = await firstKey(ada);
    const { json } = await ada.call("POST", "/api/v1/tokens", { label: "mine" });
    const tokenId = String(fieldOf(json, "info.id"));
    const sessions = await ada.call("GET", "/api/v1/sessions");
    const sessionId = String(fieldOf(sessions.json, "sessions.0.id"));
    const accountId = String(fieldOf((await ada.call("GET", "/api/v1/me")).json, "account.id"));
    const ids: Readonly<Record<string, string>> = {
      key_id: keyId,
      token_id: tokenId,
      session_id: sessionId,
      account_id: accountId,
      signature: "1".repeat(64),
    };
    const bodies: Readonly<Record<string, object>> = {
      "PATCH /api/v1/keys/{key_id}": { label: "stolen" },
    };
    for (const { name, method, path, access, takesBody } of await operations()) {
      if (!path.includes("{")) continue;
      const at = path.replaceAll(/\{(\w+)\}/g, (_, part: string) => {
        const id = ids[part];
        if (id === undefined) throw new Error(`${name}: no foreign ${part} to try`);
        return id;
      });
      const answer = await grace.call(method, at, takesBody ? (bodies[name] ?? {}) : undefined);
      const expected = access === "admin" ? "forbidden" : "not_found";
      expect([name, reasonOf(answer)]).toEqual([name, expected]);
    }
    const keys = await ada.call("GET", "/api/v1/keys");
    expect(fieldOf(keys.json, "keys.0")).toMatchObject({ state: "live", label: "First key" });
    expect((await ada.call("GET", "/api/v1/me")).status).toBe(200);
  });

  it("answers nothing that may be kept, and no secret where none is due", async () => {
    const revealed = await ada.call("POST", `/api/v1/keys/${await firstKey(ada)}/reveal`, {});
    const token = String(fieldOf(revealed.json, "token"));
    expect(token).toMatch(/^td_/);
    expect(revealed.headers.get("cache-control")).toBe("no-store");
    for (const { method, path, name } of await operations()) {
      if (method !== "GET" || path === "/api/v1/live") continue; // This one does not end.
      const answer = await ada.call("GET", path.replaceAll(/\{\w+\}/g, "1".repeat(64)));
      expect([name, answer.headers.get("cache-control")]).toEqual([name, "no-store"]);
      expect(answer.text.includes(token)).toBe(false);
    }
    const secrets = [token, ada.cookies.get(SESSION_COOKIE) ?? "", site.provider.clientSecret];
    for (const secret of secrets) expect(site.logged.join("\n")).not.toContain(secret);
  });
});

describe("bodies", () => {
  const post = (body: string, headers: Readonly<Record<string, string>> = {}) =>
    grace.call("POST", "/api/v1/keys", body, headers);

  it.each([
    ["broken JSON", '{"label": "x"', "invalid_request"],
    ["no object", '"label"', "invalid_request"],
    ["a field nobody knows", '{"label":"x","admin":true}', "invalid_request"],
    ["a wrong type", '{"label":1}', "invalid_request"],
    ["a prototype", '{"label":"x","__proto__":{"admin":true}}', "invalid_request"],
    ["nothing", "", "invalid_request"],
    ["deep nesting", "[".repeat(8000), "invalid_request"],
  ])("with %s are refused", async (_, body, reason) => {
    expect(reasonOf(await post(body))).toBe(reason);
  });

  it("are bounded, and JSON alone", async () => {
    const label = "x".repeat(CONTROL_BODY_BYTES_MAX);
    expect(reasonOf(await post(JSON.stringify({ label })))).toBe("too_large");
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      const answer = await post('{"label":"x"}', { "content-type": type });
      expect(reasonOf(answer)).toBe("unsupported_media_type");
    }
  });

  it("name the fields that do not fit, without repeating what was sent", async () => {
    const answer = await post('{"label":"<img src=x onerror=alert(1)>\\ny","burst":-1}');
    expect(fieldOf(answer.json, "error.fields")).toMatchObject([
      { path: "label" },
      { path: "burst" },
    ]);
    expect(answer.text).not.toContain("onerror");
  });

  it("keep a label as it is, for pages that show it as text", async () => {
    const label = "<script>alert('x')</script>&amp;";
    const made = await post(JSON.stringify({ label }));
    expect(made.status).toBe(201);
    expect(fieldOf(made.json, "key.label")).toBe(label);
    expect(made.headers.get("content-type")).toMatch(/^application\/json/);
    expect(made.headers.get("x-content-type-options")).toBe("nosniff");
  });
});

describe("what is no route", () => {
  it("answers in the one form: paths, methods, encodings, bytes", async () => {
    expect(reasonOf(await grace.call("GET", "/api/v1/nothing"))).toBe("not_found");
    expect(reasonOf(await grace.call("PUT", "/api/v1/keys", {}))).toBe("method_not_allowed");
    expect(reasonOf(await grace.call("GET", "/api/v1/keys/%ff"))).toBe("invalid_request");
    const answer = await bytes("NONSENSE\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*"reason":"invalid_request"/s);
    const large = await bytes(`GET / HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(40_000)}\r\n\r\n`);
    expect(large).toMatch(/^HTTP\/1\.1 431 /);
  });

  it("serves the pages by their names, and nothing outside their folder", async () => {
    for (const path of ["/", "/keys", "/connect", "/index.html"]) {
      const page = await grace.call("GET", path);
      expect([path, page.status]).toEqual([path, 200]);
      expect(page.text).toContain("<title>pages</title>");
      expect(page.headers.get("cache-control")).toBe("no-cache");
    }
    expect((await grace.call("GET", "/app.js")).headers.get("content-type")).toMatch(/javascript/);
    const outside = ["/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "//etc/passwd"];
    for (const path of outside) {
      const answer = await bytes(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
      expect(answer).not.toContain("not for anybody");
      expect(answer).toMatch(/^HTTP\/1\.1 40[034] /);
    }
  });

  it("is a page to a browser that goes there, and not found all the same", async () => {
    const at = async (path: string, accept: string) => {
      const answer = await fetch(`${site.url}${path}`, { headers: { accept } });
      return [answer.status, answer.headers.get("content-type"), await answer.text()];
    };
    const html = "text/html,application/xhtml+xml,*/*;q=0.8";
    const page = [404, expect.stringContaining("html"), expect.stringContaining("<title>")];
    const fault = [404, expect.stringContaining("json"), expect.stringContaining("not_found")];
    expect(await at("/no-such-page", html)).toEqual(page);
    expect(await at("/no-such-page", "*/*")).toEqual(fault);
    expect(await at("/api/v1/nothing", html)).toEqual(fault);
  });

  it("sends a page's files compressed to clients that accept it, with `Vary`", async () => {
    for (const [encoding, sent] of [
      ["gzip, deflate, br", "gzip"],
      ["identity", null],
    ] as const) {
      const headers = { "accept-encoding": encoding };
      const answer = await fetch(`${site.url}/app.js`, { headers });
      expect(await answer.text()).toBe("export {};");
      expect(answer.headers.get("vary")?.toLowerCase()).toContain("accept-encoding");
      expect(answer.headers.get("content-encoding")).toBe(sent);
    }
  });

  it("carries the security headers on pages and on the API, errors included", async () => {
    for (const path of ["/", "/api/v1/site", "/api/v1/nothing", "/api/v1/me"]) {
      const { headers } = await new Browser(site.url).call("GET", path);
      const policy = headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|\*/);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
      expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
      expect(headers.get("permissions-policy")).toContain("camera=()");
      expect(headers.get("strict-transport-security")).toBeNull();
      expect(headers.get("access-control-allow-origin")).toBeNull();
      expect(headers.get("server") ?? headers.get("x-powered-by")).toBeNull();
    }
  });
});

describe("the live stream over HTTP", () => {
  async function open(browser: Browser, method = "GET") {
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const abort = new AbortController();
    const response = await fetch(`${site.url}/api/v1/live`, {
      ...{ method, signal: abort.signal },
      headers: { cookie, "sec-fetch-site": "same-origin" },
    });
    return { response, abort, reader: response.body?.getReader() };
  }

  it("begins with the numbers, is not kept, and ends with the session", async () => {
    const browser = new Browser(site.url);
    await browser.login("grace");
    const { response, reader } = await open(browser);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(response.headers.get("cache-control")).toBe("no-store");
    let text = "";
    const readUntil = async (form: RegExp): Promise<void> => {
      while (!form.test(text)) {
        const { done = true, value } = (await reader?.read()) ?? {};
        if (done) break;
        text += Buffer.from(value ?? []).toString();
      }
      expect(text).toMatch(form);
    };
    await readUntil(/event: usage\ndata: \{"range":"hour".*\n\n/);
    await browser.call("POST", "/api/v1/logout", {});
    const ended = readUntil(/event: ended\ndata: \{\}\n\n$/);
    site.clock.advance(EVENT_STREAM_PERIOD_MS);
    await ended;
    expect((await reader?.read())?.done).toBe(true);
  });

  it("is open to no other account; streams are bounded, HEAD not counted", async () => {
    expect((await open(new Browser(site.url))).response.status).toBe(401);
    const statuses = [];
    for (let count = 0; count < 6; count += 1) {
      statuses.push((await open(ada, "HEAD")).response.status);
    }
    expect(new Set(statuses)).toEqual(new Set([405]));
    const streams = [];
    for (let count = 0; count < 5; count += 1) streams.push(await open(ada));
    expect(streams.map(({ response }) => response.status)).toEqual([200, 200, 200, 200, 429]);
    expect(streams[4]?.response.headers.get("retry-after")).toBe("2");
    for (const { abort } of streams) abort.abort();
  });
});

describe("a client that requests too often", () => {
  it("is identified by its own address: no header of its own changes it", async () => {
    const responses = [];
    for (let count = 0; count < 25; count += 1) {
      const headers = {
        "x-forwarded-for": `198.51.100.${count}`,
        forwarded: `for=10.0.0.${count}`,
      };
      responses.push(await new Browser(site.url).call("POST", "/api/v1/login", {}, headers));
    }
    const last = responses.at(-1);
    expect([last?.status, last === undefined ? null : reasonOf(last)]).toEqual([
      429,
      "rate_limited",
    ]);
    expect(Number(last?.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await grace.comeBack(`${site.url}/login/callback?code=x&state=y`)).toBe(
      "/?login_error=rate_limited",
    );
  });
});

describe("a client that requests very often", () => {
  it("of the API gets 429, whatever it requests and whatever its identity", async () => {
    const { burst } = LIMITS.request;
    site.clock.advance(60_000); // The logins used some of the limit.
    const asked = await Promise.all(
      Array.from({ length: burst + 10 }, (_, count) =>
        (count % 2 === 0 ? ada : new Browser(site.url)).call("GET", "/api/v1/me"),
      ),
    );
    const refused = asked.filter((answer) => reasonOf(answer) === "rate_limited");
    expect(refused).toHaveLength(10);
    expect((await ada.call("GET", "/api/v1/site")).status).toBe(429);
    site.clock.advance(LIMITS.request.everyMs);
    expect((await ada.call("GET", "/api/v1/site")).status).toBe(200);
  });

  it("guesses five keys a minute, under one login or several from one address", async () => {
    const guess = (browser: Browser) =>
      browser.call("POST", "/api/v1/keys/link", { token: `td_test_${"0".repeat(33)}` });
    const responses = [];
    for (let count = 0; count < 6; count += 1) responses.push(await guess(ada));
    expect(responses.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 429]);
    expect((await guess(grace)).status).toBe(429);
    site.clock.advance(12_000);
    expect((await guess(grace)).status).toBe(400);
    expect((await guess(ada)).status).toBe(429);
  });
});

describe("a request that does not arrive", () => {
  it("is ended, whether its headers or its body are late", async () => {
    const clock = createFakeClock();
    const web = createWebServer(
      {
        ...{ clock, log: silent, routes: [], attempts: createAttemptLimiter(clock) },
        authenticator: stub<Authenticator>({}),
        onReturn: async () => "/",
        onLive: () => {
          throw new Error("nobody listens");
        },
      },
      {
        ...{ host: "127.0.0.1", port: 0, publicUrl: site.url, version: "test" },
        ...{ fetchOrigins: [], trustedProxies: [], pagesFolder: tmpdir() },
        requestTimeoutMs: 100,
      },
    );
    const { port } = await web.start();
    const head = "POST /api/v1/login HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    for (const late of ["", "GET / HTTP/1.1\r\nhost: x\r\n", `${head}content-length: 9\r\n\r\n{`]) {
      expect(await bytes(late, port)).toMatch(/^(?:HTTP\/1\.1 4\d\d [\s\S]*)?$/);
    }
    await web.stop();
  });
});

/** Sends bytes on a separate socket; returns what arrives until it ends. */
function bytes(text: string, port = Number(new URL(site.url).port)): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    socket.on("data", (chunk) => {
      answer += chunk.toString();
    });
    socket.on("close", () => resolve(answer));
    // A server may end a connection by a reset.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") reject(error);
    });
  });
}
