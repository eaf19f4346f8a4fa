import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  Browser,
  fieldOf,
  reasonOf,
  startTestControl,
  type TestControl,
} from "../../support/control.ts";

let site: TestControl;
let grace: Browser;
beforeAll(async () => {
  site = await startTestControl();
  grace = new Browser(site.url);
});
afterAll(() => site?.stop());
beforeEach(async () => {
  // A minute later no attempt limit is exhausted.
  site.clock.advance(60_000);
  await grace.login("grace", { fresh: true });
});

async function made(options: object) {
  const { status, json, text } = await grace.call("POST", "/api/v1/tokens", {
    label: "ci",
    ...options,
  });
  if (status !== 201) throw new Error(text);
  return { id: String(fieldOf(json, "info.id")), token: String(fieldOf(json, "token")), json };
}

/** A program that has the token and no browser state. */
function program(token: string) {
  return async (method: string, path: string, body?: unknown) =>
    await new Browser(site.url).send(
      `${site.url}${path}`,
      method,
      {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body,
    );
}

const READS = [
  "/api/v1/me",
  "/api/v1/plan",
  "/api/v1/keys",
  "/api/v1/usage",
  "/api/v1/audit",
  "/api/v1/refusals",
];

describe("a management token", () => {
  it("to read reads what the account's pages read, and changes nothing", async () => {
    const { token, json } = await made({ scope: "read" });
    expect(fieldOf(json, "info")).toMatchObject({ label: "ci", scope: "read" });
    const call = program(token);
    for (const path of READS) expect([path, (await call("GET", path)).status]).toEqual([path, 200]);
    expect(fieldOf((await call("GET", "/api/v1/me")).json, "via")).toBe("token");
    const refused = await call("POST", "/api/v1/keys", { label: "x" });
    expect([refused.status, reasonOf(refused)]).toEqual([403, "forbidden"]);
  });

  it("to write makes, changes, rotates and revokes keys, each with its entry", async () => {
    const call = program((await made({ scope: "write" })).token);
    const key = await call("POST", "/api/v1/keys", { label: "by a program" });
    expect(key.status).toBe(201);
    const path = `/api/v1/keys/${String(fieldOf(key.json, "key.id"))}`;
    expect((await call("PATCH", path, { label: "changed" })).status).toBe(200);
    expect((await call("POST", `${path}/rotate`, { overlap_seconds: 60 })).status).toBe(201);
    expect((await call("POST", `${path}/revoke`, {})).status).toBe(200);
    const { json } = await grace.call("GET", "/api/v1/audit?limit=4");
    const entries = Object.values(Object(fieldOf(json, "entries")));
    expect(entries.map((entry) => fieldOf(entry, "actor"))).toEqual([
      "token",
      "token",
      "token",
      "token",
    ]);
  });

  it("does nothing that needs a session: reveal, link, log out, make tokens, operate", async () => {
    const call = program((await made({ scope: "write" })).token);
    const keys = await call("GET", "/api/v1/keys");
    const keyId = String(fieldOf(keys.json, "keys.0.id"));
    const refused: readonly (readonly [string, string, object?])[] = [
      ["POST", `/api/v1/keys/${keyId}/reveal`, {}],
      ["POST", "/api/v1/keys/link", { token: "x" }],
      ["GET", "/api/v1/sessions"],
      ["POST", "/api/v1/logout-everywhere", {}],
      ["GET", "/api/v1/tokens"],
      ["POST", "/api/v1/tokens", { label: "another" }],
      ["PATCH", "/api/v1/me", { name: "x" }],
      ["GET", "/api/v1/admin/accounts"],
    ];
    for (const [method, path, body] of refused) {
      const response = await call(method, path, body);
      expect([path, response.status, reasonOf(response)]).toEqual([path, 403, "forbidden"]);
    }
  });

  it("is listed with a hint, and ends when it is revoked or its time is over", async () => {
    const revoked = await made({});
    const timed = await made({ expires_at: new Date(site.clock.unixMs() + 60_000).toISOString() });
    const list = await grace.call("GET", "/api/v1/tokens");
    expect(list.text).not.toContain(revoked.token);
    expect(list.text).toContain(`…${revoked.token.slice(-4)}`);
    expect((await program(timed.token)("GET", "/api/v1/me")).status).toBe(200);
    expect((await grace.call("DELETE", `/api/v1/tokens/${revoked.id}`)).json).toEqual({ ended: 1 });
    site.clock.advance(61_000);
    for (const { token } of [revoked, timed]) {
      expect(reasonOf(await program(token)("GET", "/api/v1/me"))).toBe("unauthorized");
    }
  });

  it("is checked alone: neither an additional session helps nor half a token", async () => {
    for (const authorization of ["Bearer x", "Basic eDp5", "Bearer", "bearer tdm_", ""]) {
      const response = await grace.call("GET", "/api/v1/me", undefined, { authorization });
      expect([authorization, reasonOf(response)]).toEqual([authorization, "unauthorized"]);
    }
  });
});
