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

/** What each edge's admin listener answers, by path; anything else is 404. */
const answers: Record<"one" | "two", Record<string, unknown>> = { one: {}, two: {} };
const asked: string[] = [];
const servers: Server[] = [];
let site: TestControl;
let grace: Browser;
let accountId = "";

async function startEdge(name: "one" | "two"): Promise<string> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://edge");
    asked.push(`${url.pathname} ${url.searchParams.get("account")}`);
    const answer = answers[name][url.pathname];
    response.statusCode = answer === undefined ? 404 : 200;
    response.end(typeof answer === "string" ? answer : JSON.stringify(answer ?? {}));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A TCP server that listens has an address of this form.
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
  asked.length = 0;
});

const SIGNATURE = encodeBase58(new Uint8Array(64).fill(7));

describe("a transaction", () => {
  it("is answered with the receipts of all edges, asked in the account's own name", async () => {
    answers.one[`/receipts/${SIGNATURE}`] = { signature: SIGNATURE, state: "landed", slot: 5 };
    const { status, json } = await grace.call("GET", `/api/v1/transactions/${SIGNATURE}`);
    expect(status).toBe(200);
    expect(json).toEqual({
      signature: SIGNATURE,
      receipts: [{ edge: "one", receipt: { signature: SIGNATURE, state: "landed", slot: 5 } }],
      unreachable: ["away"],
    });
    expect(new Set(asked)).toEqual(new Set([`/receipts/${SIGNATURE} ${accountId}`]));
  });

  it("that no edge knows is not there, with the edges that could not be asked", async () => {
    const other = encodeBase58(new Uint8Array(64).fill(9));
    const answer = await grace.call("GET", `/api/v1/transactions/${other}`);
    expect([answer.status, reasonOf(answer)]).toEqual([404, "not_found"]);
    expect(fieldOf(answer.json, "error.unreachable")).toEqual(["away"]);
  });

  it("is asked for by its signature alone: no other path of an edge can be reached", async () => {
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

describe("the latest refusals", () => {
  it("are those of all edges, newest first, with what an edge garbles left out", async () => {
    const row = (at: string, reason: string) => ({ at, reason, sentence: `because ${reason}` });
    answers.one["/refusals"] = {
      refusals: [
        row("2026-11-21T10:00:02.000Z", "rate_limited"),
        row("2026-11-21T10:00:00.000Z", "tip_missing"),
      ],
    };
    const keys = await grace.call("GET", "/api/v1/keys");
    const [id, hint] = ["id", "hint"].map((name) => fieldOf(keys.json, `keys.0.${name}`));
    const key_id = String(id).replaceAll("-", "");
    answers.two["/refusals"] = {
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
    answers.two["/refusals"] = "<html>";
    const garbled = await grace.call("GET", "/api/v1/refusals");
    expect(Object(fieldOf(garbled.json, "unreachable"))).toHaveLength(2);
    answers.two["/refusals"] = { refusals: "x".repeat(300 * 1024) };
    const large = await grace.call("GET", "/api/v1/refusals");
    expect(Object(fieldOf(large.json, "unreachable"))).toHaveLength(2);
  });
});
