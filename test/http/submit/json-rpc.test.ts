import { describe, expect, it } from "vitest";
import { RequestContext } from "../../../src/http/request-context.ts";
import { RequestTracker } from "../../../src/http/request-tracker.ts";
import { ALWAYS_READY, type Health } from "../../../src/http/routes.ts";
import { createRpcHandler } from "../../../src/http/submit/json-rpc.ts";
import type { Submit } from "../../../src/http/submit/submission.ts";
import { type AccessControl, createAccessControl } from "../../../src/limits/access-control.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { testPrincipal } from "../../support/principals.ts";
import { stub } from "../../support/stub.ts";
import { fakeResponse, trackerOn } from "../fake-response.ts";

const SEND = { jsonrpc: "2.0", id: 1, method: "sendTransaction", params: ["AAAA"] };
const plan = { name: "P", ratePerSecond: 1, burst: 100, shared: false };
const info = { tipAccounts: ["Tip1", "Tip2"], version: "1.2.3" };
const DRAINING = { reason: "overloaded", message: "draining", data: {} } as const;

function handle(
  body: unknown,
  submit: Submit,
  hasKey = true,
  health: Health = ALWAYS_READY,
  rejectsNewWork = false,
) {
  const clock = createFakeClock();
  const tracker = trackerOn(clock);
  const access = createAccessControl({
    clock,
    keys: { lookup: () => null, changes: 0 },
    looksMistyped: () => false,
    globalLimits: null,
  });
  const response = fakeResponse();
  const context = new RequestContext(response, tracker, "rpc");
  if (hasKey) context.principal = testPrincipal("acme", plan);
  tracker.draining = rejectsNewWork;
  const parts = { clock, access, submit, tracker, submitCall: null, health, info };
  const handler = createRpcHandler(parts, DRAINING);
  handler.handle(context, Buffer.from(JSON.stringify(body)));
  const answer = response.calls.find((call) => call.startsWith("end "))?.slice(4) ?? null;
  return { answer, context, access, tracker, response };
}

const accept: Submit = (_, done) => done({ kind: "accepted", signature: "s" });

describe("a single call", () => {
  it("is answered immediately, or waits", () => {
    expect(handle(SEND, accept).answer).toBe('{"jsonrpc":"2.0","result":"s","id":1}');
    const waiting = handle(SEND, () => {});
    expect(waiting.answer).toBeNull();
    expect(waiting.context.isQueued).toBe(true);
  });

  it("is submitted for its account, key and plan, as is each call of a batch", () => {
    const seen: unknown[] = [];
    const note: Submit = ({ account, keyId, plan }, done) => {
      seen.push({ account, keyId, plan });
      accept({} as Parameters<Submit>[0], done);
    };
    handle(SEND, note);
    handle([SEND], note);
    const holder = { account: "acme", keyId: "0".repeat(32), plan: plan.name };
    expect(seen).toEqual([holder, holder]);
  });

  it("costs nothing beyond what the request has paid", () => {
    expect(handle(SEND, accept).access.counters.allowed).toBe(0);
  });
});

describe("getHealth", () => {
  const HEALTH = { jsonrpc: "2.0", id: 4, method: "getHealth" };
  const UNHEALTHY =
    '{"jsonrpc":"2.0","error":{"code":-32005,"message":"Node is unhealthy",' +
    '"data":{"numSlotsBehind":null}},"id":4}';

  it("is ok, and unhealthy while the edge drains, in a batch too", () => {
    const draining = { failing: () => ["serving"], isDraining: () => true };
    expect(handle(HEALTH, accept).answer).toBe('{"jsonrpc":"2.0","result":"ok","id":4}');
    expect(handle(HEALTH, accept, false, draining).answer).toBe(UNHEALTHY);
    expect(handle([HEALTH], accept, false, draining).answer).toBe(`[${UNHEALTHY}]`);
  });

  it("is ok for an edge that is not ready for another reason", () => {
    const unready = { failing: () => ["slot"], isDraining: () => false };
    expect(handle(HEALTH, accept, false, unready).answer).toContain('"ok"');
  });
});

describe("a call without a key", () => {
  const draining = { failing: () => ["serving"], isDraining: () => true };
  const ask = (method: string) => ({ jsonrpc: "2.0", id: 4, method });
  const VERSION = { "solana-core": "4.2.2", "feature-set": 0, touchdown: "1.2.3" };

  it("gets the tip accounts, and the version as clients of a node read it", () => {
    const answers = ["getTipAccounts", "getVersion"].map((method) => {
      return JSON.parse(handle(ask(method), accept, false).answer ?? "");
    });
    expect(answers).toEqual([
      { jsonrpc: "2.0", result: ["Tip1", "Tip2"], id: 4 },
      { jsonrpc: "2.0", result: VERSION, id: 4 },
    ]);
    const batch = handle([ask("getVersion"), ask("getHealth")], accept, false).answer;
    expect(JSON.parse(batch ?? "")).toMatchObject([{ result: VERSION }, { result: "ok" }]);
  });

  it("is answered while the edge drains, and any other is refused for that", () => {
    const whileDraining = (body: unknown) => handle(body, accept, false, draining, true).answer;
    expect(whileDraining(ask("getTipAccounts"))).toContain("Tip1");
    expect(whileDraining(SEND)).toContain('"reason":"overloaded"');
    expect(handle(SEND, accept, false).answer).toContain('"reason":"unauthorized"');
  });
});

describe("a batch", () => {
  it("charges every call but the first", () => {
    expect(handle([SEND, SEND, SEND], accept).access.counters.allowed).toBe(2);
  });

  it("counts each of its calls", () => {
    const { tracker } = handle([SEND, SEND, 7], accept);
    expect(tracker.counters.accepted).toBe(2);
    expect(tracker.rejections.invalid_request).toBe(1);
  });

  it("spreads its bytes over its calls in usage", () => {
    const clock = createFakeClock();
    const used: number[] = [];
    const usage = { request: (_: string, __: unknown, bytes: number) => void used.push(bytes) };
    const log = { info() {}, warn() {}, error() {} };
    const tracker = new RequestTracker(
      { clock, log, latency: null, usage },
      { requestDeadlineMs: 100 },
    );
    const context = new RequestContext(fakeResponse(), tracker, "rpc");
    context.principal = testPrincipal("acme", plan);
    context.bodyBytes = 300;
    const access = stub<AccessControl>({ charge: () => 0 });
    const health = ALWAYS_READY;
    const handler = createRpcHandler(
      { clock, access, submit: accept, tracker, submitCall: null, health, info },
      DRAINING,
    );
    handler.handle(context, Buffer.from(JSON.stringify([SEND, SEND, 7])));
    expect(used).toEqual([100, 100, 100]);
  });

  it("ignores a second response", () => {
    const twice: Submit = (submission, done) => {
      accept(submission, done);
      accept(submission, done);
    };
    const { answer, tracker } = handle([SEND, SEND], twice);
    expect(JSON.parse(answer ?? "")).toHaveLength(2);
    expect(tracker.counters.accepted).toBe(2);
  });

  it("is forgotten when its client leaves", () => {
    const waiting: Parameters<Submit>[1][] = [];
    const { response, tracker } = handle([SEND, SEND], (_, done) => void waiting.push(done));
    response.abort();
    for (const done of waiting) done({ kind: "accepted", signature: "s" });
    expect(tracker.counters).toMatchObject({ accepted: 0, aborted: 1, requestsOpen: 0 });
  });
});

it("lets getHealth alone pass without a key", () => {
  const health = { jsonrpc: "2.0", id: 1, method: "getHealth" };
  expect(handle(health, accept, false).answer).toContain('"ok"');
  expect(handle([health, health], accept, false).answer).toContain('"ok"');
  for (const body of [SEND, [health, SEND], [], "x", {}]) {
    expect(handle(body, accept, false).answer).toContain('"unauthorized"');
  }
});
