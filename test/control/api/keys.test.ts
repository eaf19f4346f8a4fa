import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  Browser,
  fieldOf,
  reasonOf,
  startTestControl,
  type TestControl,
} from "../../support/control.ts";
import { createSigner } from "../../support/signer.ts";

let site: TestControl;
let grace: Browser;
beforeAll(async () => {
  site = await startTestControl();
  grace = new Browser(site.url);
  await grace.login("grace");
});
afterAll(() => site?.stop());
// 15 s later no attempt limit is exhausted, and the login is still recent.
beforeEach(() => site.clock.advance(15_000));

const inDays = (days: number): string =>
  new Date(site.clock.unixMs() + days * 86_400_000).toISOString();

/** Creates a key; returns its path, id and text. */
async function made(options: object = {}) {
  const { status, json, text } = await grace.call("POST", "/api/v1/keys", {
    label: "x",
    ...options,
  });
  if (status !== 201) throw new Error(text);
  const id = String(fieldOf(json, "key.id"));
  return { id, path: `/api/v1/keys/${id}`, token: String(fieldOf(json, "token")), json };
}

async function lastEntry() {
  return fieldOf((await grace.call("GET", "/api/v1/audit?limit=1")).json, "entries.0");
}

describe("a key", () => {
  it("is made with its restrictions, and shown with a hint of its text alone", async () => {
    const expires_at = inDays(30);
    const allowed_addresses = ["203.0.113.0/24", "2001:db8::/32"];
    const limits = { rate_per_second: 5, burst: 10 };
    const { json, token, id } = await made({
      label: "bot",
      expires_at,
      allowed_addresses,
      ...limits,
    });
    expect(fieldOf(json, "key")).toMatchObject({
      ...{ label: "bot", state: "live", expires_at, allowed_addresses, ...limits },
      ...{ hint: `td_…${token.slice(-4)}`, revealable: true, rotated_from: null },
    });
    const list = await grace.call("GET", "/api/v1/keys");
    const keys = Object.values(Object(fieldOf(list.json, "keys")));
    expect(keys.find((key) => fieldOf(key, "id") === id)).toMatchObject(
      Object(fieldOf(json, "key")),
    );
    expect(list.text).not.toContain(token);
    expect(await lastEntry()).toMatchObject({ action: "key.create", detail: { label: "bot" } });
  });

  it("is changed in the given fields, and null removes a restriction", async () => {
    const { path } = await made({ expires_at: inDays(1), rate_per_second: 5, burst: 10 });
    const first = await grace.call("PATCH", path, { allowed_addresses: ["198.51.100.7"] });
    expect(first.status).toBe(200);
    expect(fieldOf(first.json, "key")).toMatchObject({ label: "x", rate_per_second: 5, burst: 10 });
    const second = await grace.call("PATCH", path, {
      ...{ label: "renamed", expires_at: null, rate_per_second: null, burst: null },
      allowed_addresses: [],
    });
    expect(fieldOf(second.json, "key")).toMatchObject({
      ...{ label: "renamed", expires_at: null, rate_per_second: null, burst: null },
      allowed_addresses: [],
    });
    expect(await lastEntry()).toMatchObject({ action: "key.change" });
  });

  it.each([
    ["an end that is past", { expires_at: "2020-01-01T00:00:00Z" }],
    ["an end without a zone", { expires_at: "2099-01-01T00:00:00" }],
    ["an end beyond all calendars", { expires_at: "+999999-01-01T00:00:00Z" }],
    ["a rate above the plan's", { rate_per_second: 51, burst: 1 }],
    ["a rate without a burst", { rate_per_second: 5 }],
    ["a burst without end", { rate_per_second: 5, burst: 1e308 }],
    ["a rate that is no number", { rate_per_second: "5", burst: 5 }],
    ["a network that is none", { allowed_addresses: ["203.0.113.0/33"] }],
    ["a network that is a query", { allowed_addresses: ["1.2.3.4'; drop table keys"] }],
    ["too many networks", { allowed_addresses: Array.from({ length: 33 }, () => "10.0.0.1") }],
  ])("is not made with %s", async (_, options) => {
    const response = await grace.call("POST", "/api/v1/keys", { label: "x", ...options });
    expect([response.status, reasonOf(response)]).toEqual([400, "invalid_request"]);
  });

  it.each([
    ["64 characters of four bytes each", "🚀".repeat(64)],
    ["letters written from right to left", "مفتاح"],
    ["a family joined by what has no width", "👩‍👩‍👧"],
  ])("may be called %s", async (_, label) => {
    expect(fieldOf((await made({ label })).json, "key.label")).toBe(label);
  });

  it.each([
    ["65 characters", "x".repeat(65)],
    ["nothing", ""],
    ["blanks", " \u3000 "],
    ["what cannot be seen", "\u200b\u200d"],
    ["a NUL", "a\u0000b"],
    ["two lines", "a\u2028b"],
    ["letters turned around", "live\u202etset"],
    ["half a character", "a\ud800"],
  ])("is not called %s", async (_, label) => {
    const response = await grace.call("POST", "/api/v1/keys", { label });
    expect([response.status, reasonOf(response)]).toEqual([400, "invalid_request"]);
  });

  it("is rotated: the new key works immediately, the old one until the overlap ends", async () => {
    const old = await made({ label: "rotating", allowed_addresses: ["10.0.0.0/8"] });
    const rotated = await grace.call("POST", `${old.path}/rotate`, { overlap_seconds: 60 });
    expect(rotated.status).toBe(201);
    expect(fieldOf(rotated.json, "key")).toMatchObject({
      ...{ rotated_from: old.id, label: "rotating", state: "live" },
      allowed_addresses: ["10.0.0.0/8"],
    });
    expect(fieldOf(rotated.json, "token")).not.toBe(old.token);
    expect(await stateOf(old.id)).toBe("live");
    const { id, hint } = Object(fieldOf(rotated.json, "key"));
    expect(await fieldOfKey(old.id, "replaced_by")).toEqual({ id, hint });
    expect(await fieldOfKey(id, "replaced_by")).toBeNull();
    const twice = await grace.call("POST", `${old.path}/rotate`, { overlap_seconds: 60 });
    expect([twice.status, reasonOf(twice)]).toEqual([409, "conflict"]);
    expect(String(fieldOf(twice.json, "error.message"))).toContain(hint);
    expect(await lastEntry()).toMatchObject({ action: "key.rotate" });
    site.clock.advance(61_000);
    expect(await stateOf(old.id)).toBe("expired");
    const again = await grace.call("POST", `${old.path}/rotate`, {});
    expect([again.status, reasonOf(again)]).toEqual([409, "conflict"]);
  });

  it("is revoked, for good, and cannot be revealed, rotated or changed any more", async () => {
    const { path, id } = await made();
    const revoked = await grace.call("POST", `${path}/revoke`, {});
    expect(fieldOf(revoked.json, "key.state")).toBe("revoked");
    expect((await grace.call("POST", `${path}/revoke`, {})).status).toBe(200);
    for (const act of ["rotate", "reveal"]) {
      expect([act, reasonOf(await grace.call("POST", `${path}/${act}`, {}))]).toEqual([
        act,
        "conflict",
      ]);
    }
    expect(reasonOf(await grace.call("PATCH", path, { label: "y" }))).toBe("conflict");
    expect(await stateOf(id)).toBe("revoked");
  });

  it("without an account is linked once; every other case gives the same refusal", async () => {
    const token = await site.store.orphanKey();
    // A label that cannot be stored is rejected before the key has moved.
    for (const label of ["a\u202eb", "a\u2028b", "a\ud800"]) {
      const before = (await grace.call("GET", "/api/v1/keys")).text;
      const odd = await grace.call("POST", "/api/v1/keys/link", { token, label });
      expect(reasonOf(odd)).toBe("invalid_request");
      expect((await grace.call("GET", "/api/v1/keys")).text).toBe(before);
    }
    site.clock.advance(60_000);
    const linked = await grace.call("POST", "/api/v1/keys/link", { token, label: "linked" });
    expect(fieldOf(linked.json, "key")).toMatchObject({ label: "linked", state: "live" });
    const ada = new Browser(site.url);
    await ada.login("ada");
    const responses = [];
    for (const guess of [token, `td_test_${"a".repeat(33)}`, "x"]) {
      responses.push((await ada.call("POST", "/api/v1/keys/link", { token: guess })).text);
    }
    expect(new Set(responses).size).toBe(1);
    expect(responses[0]).toContain("key_refused");
  });
});

describe("a public key", () => {
  const start = (public_key: string) =>
    grace.call("POST", "/api/v1/public-keys/challenges", { public_key });

  it("is registered with its restrictions by a signature, and then acted on as a key", async () => {
    const signer = createSigner();
    const asked = await start(signer.publicKey);
    expect(asked.status).toBe(201);
    const text = String(fieldOf(asked.json, "challenge.text"));
    expect(fieldOf(asked.json, "challenge.command")).toBe(`solana sign-offchain-message '${text}'`);
    const limits = { allowed_addresses: ["203.0.113.0/24"], rate_per_second: 5, burst: 10 };
    const added = await grace.call("POST", "/api/v1/public-keys", {
      ...{ challenge_id: fieldOf(asked.json, "challenge.id"), label: "wallet", ...limits },
      signature: signer.signOffchain(text),
    });
    expect(added.status).toBe(201);
    expect(fieldOf(added.json, "key")).toMatchObject({
      ...{ kind: "public_key", public_key: signer.publicKey, label: "wallet", ...limits },
      ...{ state: "live", revealable: false },
    });
    const id = String(fieldOf(added.json, "key.id"));
    const path = `/api/v1/keys/${id}`;
    expect((await grace.call("PATCH", path, { label: "renamed" })).status).toBe(200);
    const rotated = await grace.call("POST", `${path}/rotate`, {});
    expect([rotated.status, reasonOf(rotated)]).toEqual([400, "invalid_request"]);
    expect((await grace.call("POST", `${path}/revoke`, {})).status).toBe(200);
    expect(await stateOf(id)).toBe("revoked");
  });

  it("is refused with the reason: no key, a wrong signature, a used challenge", async () => {
    expect(reasonOf(await start("x"))).toBe("invalid_request");
    const signer = createSigner();
    const { json } = await start(signer.publicKey);
    const challenge_id = fieldOf(json, "challenge.id");
    const text = String(fieldOf(json, "challenge.text"));
    const register = (signature: string) =>
      grace.call("POST", "/api/v1/public-keys", { challenge_id, label: "x", signature });
    const wrong = await register(createSigner().signOffchain(text));
    expect([wrong.status, reasonOf(wrong)]).toEqual([400, "invalid_request"]);
    expect((await register(signer.signOffchain(text))).status).toBe(201);
    const again = await register(signer.signOffchain(text));
    expect([again.status, reasonOf(again)]).toEqual([409, "conflict"]);
  });
});

const stateOf = (id: string): Promise<unknown> => fieldOfKey(id, "state");

async function fieldOfKey(id: string, field: string): Promise<unknown> {
  const { json } = await grace.call("GET", "/api/v1/keys");
  const keys = Object.values(Object(fieldOf(json, "keys")));
  return fieldOf(
    keys.find((key) => fieldOf(key, "id") === id),
    field,
  );
}
