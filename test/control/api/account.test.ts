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
  site = await startTestControl({
    control: {
      regions: ["fra=https://fra.example", "ny=https://ny.example"],
      quic_regions: ["fra=fra.example:8009"],
      explorer_url: "https://explorer.example/tx/{signature}",
    },
  });
  grace = new Browser(site.url);
});
afterAll(() => site?.stop());
beforeEach(async () => {
  // A minute later no attempt limit is exhausted.
  site.clock.advance(60_000);
  await grace.login("grace");
});

describe("the site", () => {
  it("is public: its regions, and whether login is available", async () => {
    const { json } = await new Browser(site.url).call("GET", "/api/v1/site");
    expect(json).toMatchObject({
      regions: [
        { name: "fra", url: "https://fra.example", quic: "fra.example:8009" },
        { name: "ny", url: "https://ny.example", quic: null },
      ],
      explorer_url: "https://explorer.example/tx/{signature}",
      ...{ login: { available: true }, recent_login_seconds: 600 },
    });
  });
});

describe("an account", () => {
  it("is renamed, and written down with who did it and from where", async () => {
    const renamed = await grace.call(
      "PATCH",
      "/api/v1/me",
      { name: " Acme " },
      { "user-agent": "UA" },
    );
    expect(renamed.json).toEqual({ name: "Acme" });
    expect(fieldOf((await grace.call("GET", "/api/v1/me")).json, "account.name")).toBe("Acme");
    const { json } = await grace.call("GET", "/api/v1/audit?limit=1");
    expect(fieldOf(json, "entries.0")).toMatchObject({
      ...{ action: "account.rename", actor: "account" },
      ...{ address: "127.0.0.1", user_agent: "UA" },
    });
  });

  it("has an audit that only the account can read, page by page", async () => {
    for (const name of ["a", "b", "c"]) await grace.call("PATCH", "/api/v1/me", { name });
    const first = await grace.call("GET", "/api/v1/audit?limit=2");
    const next = String(fieldOf(first.json, "next"));
    const second = await grace.call("GET", `/api/v1/audit?limit=2&after=${next}`);
    const ids = [first, second].flatMap(({ json }) =>
      Object.values(Object(fieldOf(json, "entries"))).map((entry) => fieldOf(entry, "id")),
    );
    expect(new Set(ids).size).toBe(4);
    const ada = new Browser(site.url);
    await ada.login("ada");
    const other = await ada.call("GET", "/api/v1/audit?limit=200");
    for (const id of ids) expect(other.text).not.toContain(`"id":"${String(id)}"`);
    for (const after of ["x", "-1", "99999999999999999999", "1'"]) {
      const response = await grace.call("GET", `/api/v1/audit?after=${encodeURIComponent(after)}`);
      expect([after, reasonOf(response)]).toEqual([after, "invalid_request"]);
    }
    for (const limit of ["0", "201", "x", "1e9", "-1", "1.5", ""]) {
      const response = await grace.call("GET", `/api/v1/audit?limit=${limit}`);
      expect([limit, reasonOf(response)]).toEqual([limit, "invalid_request"]);
    }
  });

  it("sees its usage as columns of one length, for a region or a key alone", async () => {
    for (const range of ["hour", "day", "month"]) {
      const { json } = await grace.call("GET", `/api/v1/usage?range=${range}`);
      const columns = Object.values(Object(fieldOf(json, "series")));
      const lengths = columns.map((column) => Object.values(Object(column)).length);
      expect([range, new Set(lengths).size, lengths.length]).toEqual([range, 1, 12]);
    }
    const keys = await grace.call("GET", "/api/v1/keys");
    const key = String(fieldOf(keys.json, "keys.0.id"));
    const one = await grace.call("GET", `/api/v1/usage?key=${key}&region=fra`);
    expect(fieldOf(one.json, "totals.requests")).toBe(0);
    await site.store.there.owner.query(
      `insert into touchdown.usage_minutes
         (account_id, at, key_id, edge, region, requests, accepted, wire, slots)
       values ($1, $2, $3, 'e', 'fra', 7, 7, array_fill(0::bigint, '{32}'),
         array_fill(0::bigint, '{20}'))`,
      [
        fieldOf((await grace.call("GET", "/api/v1/me")).json, "account.id"),
        new Date(site.clock.unixMs() - (site.clock.unixMs() % 60_000)),
        key,
      ],
    );
    for (const text of [key, key.toUpperCase()]) {
      const used = await grace.call("GET", `/api/v1/usage?key=${text}&region=fra`);
      expect(fieldOf(used.json, "totals.requests")).toBe(7);
    }
    expect(reasonOf(await grace.call("GET", "/api/v1/usage?key=1"))).toBe("invalid_request");
    expect(reasonOf(await grace.call("GET", "/api/v1/usage?region=a%00b"))).toBe("invalid_request");
  });
});
