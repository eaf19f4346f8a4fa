import { describe, expect, it } from "vitest";
import { Exchange } from "../../../src/http/exchange.ts";
import { Desk } from "../../../src/http/request-tracker.ts";
import { createRpcTaker } from "../../../src/http/submit/json-rpc.ts";
import type { Submit } from "../../../src/http/submit/submission.ts";
import { createGate, type Gate } from "../../../src/limits/gate.ts";
import { deskOn, fakeWire } from "../../ingress/fake-wire.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { keyOwner } from "../../support/owners.ts";
import { stub } from "../../support/stub.ts";

const SEND = { jsonrpc: "2.0", id: 1, method: "sendTransaction", params: ["AAAA"] };
const plan = { name: "P", ratePerSecond: 1, burst: 100, shared: false };

function take(body: unknown, submit: Submit, hasKey = true) {
  const clock = createFakeClock();
  const desk = deskOn(clock);
  const gate = createGate({
    clock,
    keys: { lookup: () => null, changes: 0 },
    looksMistyped: () => false,
    sharedLimits: null,
  });
  const wire = fakeWire();
  const exchange = new Exchange(wire, desk, "rpc");
  if (hasKey) exchange.owner = keyOwner("acme", plan);
  const taker = createRpcTaker({ clock, gate, submit, desk, calls: null }, true);
  taker.take(exchange, Buffer.from(JSON.stringify(body)));
  const answer = wire.calls.find((call) => call.startsWith("end "))?.slice(4) ?? null;
  return { answer, exchange, gate, desk, wire };
}

const accept: Submit = (_, done) => done({ kind: "accepted", signature: "s" });

describe("a single call", () => {
  it("is answered at once, or waits", () => {
    expect(take(SEND, accept).answer).toBe('{"jsonrpc":"2.0","result":"s","id":1}');
    const waiting = take(SEND, () => {});
    expect(waiting.answer).toBeNull();
    expect(waiting.exchange.waiting).toBe(true);
  });

  it("costs nothing beyond what the request has paid", () => {
    expect(take(SEND, accept).gate.counters.admitted).toBe(0);
  });
});

describe("a batch", () => {
  it("charges every call but the first", () => {
    expect(take([SEND, SEND, SEND], accept).gate.counters.admitted).toBe(2);
  });

  it("counts each of its calls", () => {
    const { desk } = take([SEND, SEND, 7], accept);
    expect(desk.counters.accepted).toBe(2);
    expect(desk.refusals.invalid_request).toBe(1);
  });

  it("spreads its bytes over its calls in usage", () => {
    const clock = createFakeClock();
    const used: number[] = [];
    const usage = { request: (_: string, __: unknown, bytes: number) => void used.push(bytes) };
    const log = { info() {}, warn() {}, error() {} };
    const desk = new Desk({ clock, log, latency: null, usage }, { requestDeadlineMs: 100 });
    const exchange = new Exchange(fakeWire(), desk, "rpc");
    exchange.owner = keyOwner("acme", plan);
    exchange.bodyBytes = 300;
    const gate = stub<Gate>({ charge: () => 0 });
    const taker = createRpcTaker({ clock, gate, submit: accept, desk, calls: null }, true);
    taker.take(exchange, Buffer.from(JSON.stringify([SEND, SEND, 7])));
    expect(used).toEqual([100, 100, 100]);
  });

  it("drops an answer that comes twice", () => {
    const twice: Submit = (submission, done) => {
      accept(submission, done);
      accept(submission, done);
    };
    const { answer, desk } = take([SEND, SEND], twice);
    expect(JSON.parse(answer ?? "")).toHaveLength(2);
    expect(desk.counters.accepted).toBe(2);
  });

  it("is forgotten when its client leaves", () => {
    const waiting: Parameters<Submit>[1][] = [];
    const { wire, desk } = take([SEND, SEND], (_, done) => void waiting.push(done));
    wire.abort();
    for (const done of waiting) done({ kind: "accepted", signature: "s" });
    expect(desk.counters).toMatchObject({ accepted: 0, aborted: 1, requestsOpen: 0 });
  });
});

it("lets getHealth alone pass without a key", () => {
  const health = { jsonrpc: "2.0", id: 1, method: "getHealth" };
  expect(take(health, accept, false).answer).toContain('"ok"');
  expect(take([health, health], accept, false).answer).toContain('"ok"');
  for (const body of [SEND, [health, SEND], [], "x", {}]) {
    expect(take(body, accept, false).answer).toContain('"unauthorized"');
  }
});
