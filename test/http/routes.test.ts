import { expect, it } from "vitest";
import { RequestContext } from "../../src/http/request-context.ts";
import { ALWAYS_READY, createRoutes, type Health } from "../../src/http/routes.ts";
import { createAccessControl } from "../../src/limits/access-control.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { testPrincipal } from "../support/principals.ts";
import { receiptSource } from "../support/receipt-source.ts";
import { fakeResponse, trackerOn } from "./fake-response.ts";

const SIGNATURE = "5".repeat(88);
const principal = testPrincipal("acme", { name: "P", ratePerSecond: 1, burst: 1, shared: false });
const access = createAccessControl({
  clock: createFakeClock(),
  keys: { lookup: () => principal, changes: 0 },
  looksMistyped: () => false,
  globalLimits: null,
});

function serve(method: string, path: string, token = "", health: Health = ALWAYS_READY) {
  const asked: string[] = [];
  const clock = createFakeClock();
  const receipts = receiptSource({
    find(signature, account) {
      asked.push(`${account} ${signature}`);
      return { signature };
    },
  });
  const routes = createRoutes(
    { clock, access, receipts, tip: { accounts: ["Tip"], lamportsMin: 7 }, health },
    { version: "1", region: "here" },
  );
  const response = fakeResponse();
  const context = new RequestContext(response, trackerOn(clock), "raw");
  routes.serve(context, { method, path, token, query: "", lastEventId: "" });
  const status = response.calls.find((call) => call.startsWith("status"))?.slice(7, 10);
  return { status, asked, calls: response.calls };
}

it("requests a receipt for the key's account without charging a submission", () => {
  const before = access.counters.allowed;
  const { status, asked } = serve("GET", `/api/v1/transactions/${SIGNATURE}`, "x".repeat(20));
  expect({ status, asked }).toEqual({ status: "200", asked: [`acme ${SIGNATURE}`] });
  expect(access.counters.allowed).toBe(before);
});

it("requests no receipt without a key or with an invalid signature", () => {
  expect(serve("GET", `/api/v1/transactions/${SIGNATURE}`)).toMatchObject({
    status: "401",
    asked: [],
  });
  expect(serve("GET", "/api/v1/transactions/0", "x".repeat(20))).toMatchObject({
    status: "400",
    asked: [],
  });
});

it("bounds what it repeats of a path and a method", () => {
  for (const [method, path] of [
    ["GET", `/${"x".repeat(3_000)}`],
    ["M".repeat(3_000), "/ping"],
  ] as const) {
    for (const call of serve(method, path).calls) expect(call.length).toBeLessThan(400);
  }
});

it("answers /readyz without a key, with the names of the checks that fail", () => {
  const unready = { failing: () => ["slot", "live"], isDraining: () => false };
  const ready = serve("GET", "/readyz");
  expect([ready.status, ready.calls.at(-1)]).toEqual(["200", 'end {"status":"ready"}']);
  const not = serve("GET", "/readyz", "", unready);
  const text = '{"status":"not ready","failing":["slot","live"]}';
  expect([not.status, not.calls.at(-1)]).toEqual(["503", `end ${text}`]);
});

it("sends no body with HEAD", () => {
  for (const path of ["/", "/ping", "/readyz", "/api/v1/tip", "/nowhere"]) {
    expect(serve("HEAD", path).calls.at(-1)).toBe("end");
  }
});

it("names the endpoints to a client that posts a transaction elsewhere", () => {
  for (const path of ["/nowhere", "/api/v1/transactions", "/ping"]) {
    const told = serve("POST", path).calls.at(-1);
    expect(told).toContain("/api/v1/sendTransaction or /api/v1/sendRawTransaction");
  }
});
