import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { encodeBase58 } from "../../../src/core/encoding.ts";
import {
  Browser,
  fieldOf,
  reasonOf,
  startTestControl,
  type TestControl,
} from "../../support/control.ts";
import { freePort } from "../../support/ports.ts";

/** Responses of each edge's admin listener, by path; other paths are a 404, as at an edge. */
const responses: Record<"one" | "two", Record<string, unknown>> = { one: {}, two: {} };
const asked: string[] = [];
const servers: Server[] = [];
let site: TestControl;
let grace: Browser;
let accountId = "";

async function startEdge(name: "one" | "two"): Promise<string> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://edge");
    const account = url.searchParams.get("account");
    url.searchParams.delete("account");
    asked.push(`${url.pathname}${url.search} ${account}`);
    const answer = responses[name][url.pathname];
    response.statusCode = answer === undefined ? 404 : 200;
    const missing = { status: "error", reason: "not_found", error: "no such path" };
    response.end(typeof answer === "string" ? answer : JSON.stringify(answer ?? missing));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A listening TCP server has an address of this type.
  return `${name}=http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  const away = `away=http://127.0.0.1:${await freePort()}`;
  site = await startTestControl({
    control: { edges: [await startEdge("one"), await startEdge("two"), away] },
  });
  grace = new Browser(site.url);
  await grace.login("grace");
  accountId = String(fieldOf((await grace.call("GET", "/api/v1/me")).json, "account.id"));
});
afterAll(async () => {
  await site?.stop();
  for (const server of servers) server.close();
});
beforeEach(() => {
  site.clock.advance(60_000);
  responses.one = {};
  responses.two = {};
  asked.length = 0;
});

const SIGNATURE = encodeBase58(new Uint8Array(64).fill(7));

describe("a transaction", () => {
  it("returns the receipts of all edges, requested for the account", async () => {
    responses.one[`/receipts/${SIGNATURE}`] = { signature: SIGNATURE, state: "landed", slot: 5 };
    const { status, json } = await grace.call("GET", `/api/v1/transactions/${SIGNATURE}`);
    expect(status).toBe(200);
    expect(json).toEqual({
      signature: SIGNATURE,
      receipts: [{ edge: "one", receipt: { signature: SIGNATURE, state: "landed", slot: 5 } }],
      unreachable: ["away"],
    });
    expect(new Set(asked)).toEqual(new Set([`/receipts/${SIGNATURE} ${accountId}`]));
  });

  it("that no edge knows is not found, with the edges that did not respond", async () => {
    const other = encodeBase58(new Uint8Array(64).fill(9));
    const answer = await grace.call("GET", `/api/v1/transactions/${other}`);
    expect([answer.status, reasonOf(answer)]).toEqual([404, "not_found"]);
    expect(fieldOf(answer.json, "error.unreachable")).toEqual(["away"]);
  });

  it("is requested by its signature alone: no other path of an edge can be reached", async () => {
    for (const signature of [
      "0".repeat(64),
      `..%2f..%2fmetrics${"x".repeat(50)}`,
      "a".repeat(65),
    ]) {
      const answer = await grace.call("GET", `/api/v1/transactions/${signature}`);
      expect([signature, [400, 404].includes(answer.status)]).toEqual([signature, true]);
    }
    expect(asked).toEqual([]);
  });
});

describe("the latest transactions", () => {
  /** A transaction as an edge lists it. */
  const listed = (fill: number, received_at: string, state = "landed") => ({
    signature: encodeBase58(new Uint8Array(64).fill(fill)),
    state,
    received_at,
    received_slot: 40,
    submissions: 1,
    version: "legacy",
    tip_lamports: 1_000_000,
    priority_fee_lamports: 0,
    priority_lamports: 500_000,
    timings: { decoded_us: 90, first_sent_us: 200, first_acked_us: null },
    landing: {
      ...{ state, slot: 41, slots: 1, error: null, reason: null },
      ...{ message: "it landed", known_us: 900 },
    },
    a_newer_field: "left out",
  });
  const list = async (query = "") => {
    const { status, json } = await grace.call("GET", `/api/v1/transactions${query}`);
    const rows = Object.values(Object(fieldOf(json, "transactions")));
    const row = (one: unknown) => [fieldOf(one, "received_at"), fieldOf(one, "edge")];
    return { status, json, rows, order: rows.map(row) };
  };

  beforeEach(() => {
    responses.one["/receipts"] = {
      transactions: [listed(1, "2026-11-21T10:00:03.000Z"), listed(2, "2026-11-21T10:00:01.000Z")],
      next: null,
    };
    responses.two["/receipts"] = {
      transactions: [listed(3, "2026-11-21T10:00:02.000Z", "expired")],
      next: null,
    };
  });

  it("are those of all edges, newest first, requested for the account", async () => {
    const all = await list();
    expect(all.status).toBe(200);
    expect(all.order).toEqual([
      ["2026-11-21T10:00:03.000Z", "one"],
      ["2026-11-21T10:00:02.000Z", "two"],
      ["2026-11-21T10:00:01.000Z", "one"],
    ]);
    const { a_newer_field: _, ...known } = listed(1, "2026-11-21T10:00:03.000Z");
    expect(all.rows[0]).toEqual({ ...known, edge: "one" });
    expect(all.json).toMatchObject({ more: false, unreachable: ["away"] });
    expect(new Set(asked)).toEqual(new Set([`/receipts?limit=50 ${accountId}`]));
  });

  it("are bounded in number, and the response states whether there are more", async () => {
    const two = await list("?limit=2");
    expect(two.order.map(([at]) => at)).toEqual([
      "2026-11-21T10:00:03.000Z",
      "2026-11-21T10:00:02.000Z",
    ]);
    expect(two.json).toMatchObject({ more: true });
    responses.two["/receipts"] = { transactions: [], next: SIGNATURE };
    expect((await list()).json).toMatchObject({ more: true });
  });

  it("are filtered by the requested states; unknown states are rejected", async () => {
    const answer = await list("?state=landed,expired&limit=100");
    expect(answer.status).toBe(200);
    expect(new Set(asked)).toEqual(
      new Set([`/receipts?state=landed%2Cexpired&limit=100 ${accountId}`]),
    );
    asked.length = 0;
    const wrong = ["?state=gone", "?state=", "?limit=0", "?limit=101", "?stat=landed"];
    for (const query of [...wrong, `?account=${accountId}`, "?before=x"]) {
      const { status, json } = await list(query);
      expect([query, status, fieldOf(json, "error.reason")]).toEqual([
        query,
        400,
        "invalid_request",
      ]);
    }
    expect(asked).toEqual([]);
  });

  it("of one millisecond stay in the order in which their edge has them", async () => {
    const at = "2026-11-21T10:00:05.000Z";
    const many = Array.from({ length: 40 }, (_, index) => listed(index + 10, at));
    responses.one["/receipts"] = { transactions: many, next: null };
    const { rows } = await list();
    const signatures = rows.map((row) => fieldOf(row, "signature"));
    expect(signatures.slice(0, 40)).toEqual(many.map(({ signature }) => signature));
  });

  it("leave out what an edge garbles, and name it", async () => {
    for (const garbled of ["<html>", { transactions: 7, next: null }, { transactions: [{}] }]) {
      responses.two["/receipts"] = garbled;
      const { rows, json } = await list();
      expect(rows).toHaveLength(2);
      expect(Object(fieldOf(json, "unreachable")).toSorted()).toEqual(["away", "two"]);
    }
  });

  it("of an edge of a version that has no list are missing, and the edge is named", async () => {
    responses.two = {};
    const { rows, json } = await list();
    expect(rows).toHaveLength(2);
    expect(Object(fieldOf(json, "unreachable")).toSorted()).toEqual(["away", "two"]);
  });
});

describe("the latest refusals", () => {
  it("are those of all edges, newest first, with what an edge garbles left out", async () => {
    const row = (at: string, reason: string) => ({ at, reason, message: `because ${reason}` });
    responses.one["/refusals"] = {
      refusals: [
        row("2026-11-21T10:00:02.000Z", "rate_limited"),
        row("2026-11-21T10:00:00.000Z", "tip_missing"),
      ],
    };
    const keys = await grace.call("GET", "/api/v1/keys");
    const [id, hint] = ["id", "hint"].map((name) => fieldOf(keys.json, `keys.0.${name}`));
    const key_id = String(id).replaceAll("-", "");
    responses.two["/refusals"] = {
      refusals: [{ ...row("2026-11-21T10:00:01.000Z", "undecodable"), key_id }],
    };
    const { json } = await grace.call("GET", "/api/v1/refusals");
    const shown = Object.values(Object(fieldOf(json, "refusals")));
    expect(shown.map((one) => [fieldOf(one, "reason"), fieldOf(one, "edge")])).toEqual([
      ["rate_limited", "one"],
      ["undecodable", "two"],
      ["tip_missing", "one"],
    ]);
    expect(shown[1]).toMatchObject({ key_id: id, hint });
    expect(shown[0]).toMatchObject({ key_id: null, hint: null });
    expect(fieldOf(json, "unreachable")).toEqual(["away"]);
    const few = await grace.call("GET", "/api/v1/refusals?limit=1");
    expect(fieldOf(few.json, "refusals")).toHaveLength(1);
    responses.two["/refusals"] = "<html>";
    const garbled = await grace.call("GET", "/api/v1/refusals");
    expect(Object(fieldOf(garbled.json, "unreachable"))).toHaveLength(2);
    responses.two["/refusals"] = { refusals: "x".repeat(300 * 1024) };
    const large = await grace.call("GET", "/api/v1/refusals");
    expect(Object(fieldOf(large.json, "unreachable"))).toHaveLength(2);
  });
});

describe("the cluster", () => {
  it("is shown to operators as each edge sees it", async () => {
    const ada = new Browser(site.url);
    await ada.login("ada");
    const seen = { slot: 7, slot_ms: 250, consensus: "alpenglow", confirmation_stalled: false };
    responses.two["/cluster"] = seen;
    responses.one["/cluster"] = { ...seen, slot: null, consensus: "another" };
    const answer = await ada.call("GET", "/api/v1/admin/cluster");
    const edges = [{ edge: "two", ...seen }];
    expect(answer.json).toEqual({ edges, unreachable: ["away", "one"] });
    const refused = await grace.call("GET", "/api/v1/admin/cluster");
    expect(refused.status).toBe(403);
  });
});
