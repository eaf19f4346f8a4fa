/** Requests that a front moves, over real sockets: what a client sees is the same. */

import { connect } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { BODILESS_ANSWERS_BURST } from "../../src/core/limits.ts";
import type { Submit } from "../../src/ingress/submit.ts";
import {
  BROKEN_KEY,
  connectRaw,
  type Fixture,
  type FixtureOptions,
  KEY,
  once,
  post,
  RAW,
  RPC,
  refuse,
  SIGNATURE,
  SLOW_KEY,
  sendCall,
  startFixture,
  WITH_KEY,
} from "../conformance/http-fixture.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { addFront, type TestFront } from "../support/front.ts";
import { receiptSource } from "../support/receipt-source.ts";
import { until } from "../support/wait.ts";

const BYTES = Uint8Array.from({ length: 300 }, (_, i) => i % 251);
const REQUEST = post(RAW, BYTES, [WITH_KEY]);
const RECEIPT = `/api/v1/transactions/${SIGNATURE}`;
const STREAM = "/api/v1/receipts";
const SLOW = `api-x-token: ${SLOW_KEY}`;

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function setup(options: FixtureOptions = {}): Promise<{ edge: Fixture; front: TestFront }> {
  const edge = await startFixture(options);
  const front = addFront(edge);
  ends.push(front.stop);
  return { edge, front };
}

function ask(method: string, path: string, ...headers: readonly string[]): string {
  return `${[`${method} ${path} HTTP/1.1`, "Host: x", ...headers].join("\r\n")}\r\n\r\n`;
}

const call = sendCall(BYTES);
const batch = `[${call},{"jsonrpc":"2.0","id":"x","method":"getHealth"},7]`;
const health = '{"jsonrpc":"2.0","id":1,"method":"getHealth"}';

/** One of each kind; of a body that cuts its connection nothing is sent, which might reset it. */
const REQUESTS: Readonly<Record<string, string | Buffer>> = {
  "a transaction": REQUEST,
  "an empty one": post(RAW, "", [WITH_KEY]),
  "without a length": ask("POST", RAW, WITH_KEY),
  "without a key": post(RAW, BYTES, []),
  "with a mistyped key": post(RAW, BYTES, ["api-x-token: td_mistyped_mistyped"]),
  "with an unknown key": post(RPC, call, ["api-x-token: unknown_unknown_unknown"]),
  "with a key whose look-up fails": post(RAW, BYTES, [`api-x-token: ${BROKEN_KEY}`]),
  "within a limit": post(RAW, BYTES, [SLOW]),
  "the limit's last": post(RPC, call, [SLOW]),
  "beyond a limit": post(RAW, BYTES, [SLOW]),
  "beyond a limit, with a large body": ask("POST", RPC, SLOW, "Content-Length: 140000"),
  "too large": ask("POST", RAW, WITH_KEY, "Content-Length: 16385"),
  "too large for JSON-RPC": ask("POST", RPC, WITH_KEY, "Content-Length: 131073"),
  "too large without a key": ask("POST", RAW, "Content-Length: 131073"),
  "as large as may be": post(RAW, Buffer.alloc(16_384), [WITH_KEY]),
  chunked: ask("POST", RAW, WITH_KEY, "Transfer-Encoding: chunked"),
  "of two lengths": ask("POST", RPC, WITH_KEY, "Content-Length: 1", "Content-Length: 2"),
  "a call": post(RPC, call, [WITH_KEY]),
  "a batch": post(RPC, batch, [WITH_KEY]),
  "a batch beyond a limit": post(RPC, batch, [SLOW]),
  "no JSON": post(RPC, "{", [WITH_KEY]),
  "a large body that is none": post(RPC, "x".repeat(131_072), [WITH_KEY]),
  "another method": post(RPC, '{"jsonrpc":"2.0","id":null,"method":"x"}', [WITH_KEY]),
  getHealth: post(RPC, health, []),
  "a call without a key": post(RPC, call, []),
  "a small one without a key": post(RPC, '{"jsonrpc":"2.0","id":1}', []),
  "getHealth on /": post("/", health, []),
  "a call on /": post("/", call, [WITH_KEY]),
  "too large on /": ask("POST", "/", "Content-Length: 16385"),
  "what this is": ask("GET", "/"),
  "a ping": ask("GET", "/ping?x=1"),
  "a HEAD of it": ask("HEAD", "/ping"),
  "the tip": ask("GET", "/api/v1/tip"),
  "a receipt": ask("GET", RECEIPT, WITH_KEY),
  "a HEAD of a receipt": ask("HEAD", RECEIPT, WITH_KEY),
  "a receipt without a key": ask("GET", RECEIPT),
  "a receipt of nobody": ask("GET", `${RECEIPT.slice(0, -1)}6`, WITH_KEY),
  "a receipt beyond its limit": ask("GET", RECEIPT, SLOW),
  "a list": ask("GET", "/api/v1/transactions?limit=3", WITH_KEY),
  "a list that asks wrongly": ask("GET", "/api/v1/transactions?limit=0", WITH_KEY),
  "a preflight": ask("OPTIONS", RAW),
  nowhere: ask("GET", "/nowhere"),
  "a post to nowhere": post("/nowhere", BYTES, [WITH_KEY]),
  "a large post to nowhere": ask("POST", "/nowhere", WITH_KEY, "Content-Length: 131073"),
  "a GET of what is posted": ask("GET", RAW, WITH_KEY),
  "a PUT": ask("PUT", "/ping"),
  "a HEAD of a stream": ask("HEAD", STREAM, WITH_KEY),
};

describe("a moved request", () => {
  it("is answered as if it were not, byte for byte, and counted alike", async () => {
    const own = await startFixture({ clock: createFakeClock() });
    const { edge, front } = await setup({ clock: createFakeClock() });
    ends.push(own.stop);
    for (const [name, request] of Object.entries(REQUESTS)) {
      const headOnly = request.toString().startsWith("HEAD");
      const [expected, found] = [await textOf(own.port, request), await textOf(edge.port, request)];
      expect(expected, name).toMatch(headOnly ? /\r\n\r\n$/ : /^HTTP\/1\.1 \d/);
      expect(found, name).toBe(expected);
    }
    const { connections: _, ...counted } = own.server.counters;
    const [atFront, atMain] = [front.server.counters, edge.server.counters];
    for (const name of Object.keys(counted) as (keyof typeof counted)[]) {
      expect(atFront[name] + atMain[name], name).toBe(counted[name]);
    }
    for (const [reason, count] of Object.entries(own.server.refusals)) {
      const key = reason as keyof typeof own.server.refusals;
      expect(front.server.refusals[key] + edge.server.refusals[key], reason).toBe(count);
    }
    expect(edge.refused).toEqual(own.refused);
    expect(edge.submitted.map(({ bytes }) => bytes)).toEqual(
      own.submitted.map(({ bytes }) => bytes),
    );
    expect(atMain).toMatchObject({ connections: 0, requestsOpen: 0 });
    expect([front.elsewhere.counters.open, front.requests.open]).toEqual([0, 0]);
  });

  /** All that one request is answered, as text; not at which time. */
  async function textOf(port: number, request: string | Buffer): Promise<string> {
    const socket = connect(port, "127.0.0.1");
    const headOnly = request.toString().startsWith("HEAD");
    let text = "";
    let isEnded = false;
    socket.on("data", (data) => {
      text += data.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      isEnded = true;
    });
    socket.write(request);
    await until("the answer", () => isEnded || isWhole(text, headOnly));
    socket.destroy();
    return text.replace(/^Date: .*$/m, "Date");
  }

  function isWhole(text: string, headOnly: boolean): boolean {
    const headEnd = text.indexOf("\r\n\r\n") + 4;
    if (headEnd < 4 || headOnly) return headEnd >= 4;
    const size = Number(/^content-length: (\d+)\r$/im.exec(text)?.[1] ?? 0);
    return text.length >= headEnd + size;
  }

  it("tells whose key it carries, paid or not, but not of what is no submission", async () => {
    const { edge, front } = await setup();
    for (const request of [
      REQUEST,
      post(RPC, call, [SLOW]),
      post(RAW, BYTES, []),
      ask("GET", "/"),
    ]) {
      await once(edge.port, request);
    }
    expect(front.known).toEqual([`${KEY} acme`, `${SLOW_KEY} slow`]);
  });

  it("has its body in any cutting", async () => {
    const { edge } = await setup();
    const client = await connectRaw(edge.port);
    for (const cuts of [[], [80], [REQUEST.length - 300], [REQUEST.length - 1], [20, 150, 400]]) {
      let from = 0;
      for (const cut of [...cuts, REQUEST.length]) {
        client.write(REQUEST.subarray(from, cut));
        from = cut;
        for (let i = 0; i < 20; i += 1) await turn();
      }
      expect((await client.answer()).status).toBe(200);
    }
    expect(edge.submitted.map(({ bytes }) => bytes)).toEqual(new Array(5).fill(BYTES));
    client.close();
  });

  it("without a key is refused before its body is here", async () => {
    const { edge } = await setup();
    const client = await connectRaw(edge.port);
    client.write(ask("POST", RAW, "Content-Length: 5000"));
    expect((await client.answer()).status).toBe(401);
    client.write(new Uint8Array(5000));
    client.write(REQUEST);
    expect((await client.answer()).status).toBe(200);
    client.close();
  });

  it("is not followed by another one before its answer: that ends the connection", async () => {
    const { edge, front } = await setup();
    const client = await connectRaw(edge.port);
    client.write(Buffer.concat([REQUEST, REQUEST]));
    expect(await client.ended()).toBe("");
    await until("its end", () => front.requests.open === 0);
    expect(edge.submitted.length).toBeLessThan(2);
    expect(front.server.counters.requestsOpen).toBe(0);
    expect((await once(edge.port, REQUEST)).status).toBe(200);
  });

  it("without a body ends its connection when there are too many of them", async () => {
    const { edge } = await setup({ clock: createFakeClock() });
    const client = await connectRaw(edge.port);
    for (let sent = 0; sent < BODILESS_ANSWERS_BURST; sent += 1) {
      client.write(ask("OPTIONS", "/"));
      expect((await client.answer()).status).toBe(204);
    }
    client.write(ask("OPTIONS", "/"));
    const last = await client.answer();
    expect([last.status, last.headers.get("connection")]).toEqual([204, "close"]);
    await client.ended();
    expect(edge.server.counters.bodilessCut).toBe(1);
  });
});

describe("a client that leaves", () => {
  it("while its answer is out does no harm, and is counted once", async () => {
    const { edge, front } = await setup();
    let late: Parameters<Submit>[1] | null = null;
    edge.submit = (_, done) => {
      late = done;
    };
    const client = await connectRaw(edge.port);
    client.write(REQUEST);
    await until("the request", () => late !== null);
    expect(front.server.counters.requestsOpen).toBe(1);
    client.close();
    await until("its end", () => edge.server.counters.aborted === 1);
    (late as Parameters<Submit>[1] | null)?.({ kind: "accepted", signature: SIGNATURE });
    await turn();
    expect(front.server.counters).toMatchObject({ requestsOpen: 0, aborted: 0, requests: 0 });
    expect(edge.server.counters).toMatchObject({ requestsOpen: 0, requests: 1, accepted: 0 });
    expect(edge.errors).toEqual([]);
  });

  it("gives up the answer that was held for it", async () => {
    const receipts = receiptSource({ ticket: () => 1 });
    const { edge } = await setup({ receipts });
    const { waits } = edge.server.receipts;
    const client = await connectRaw(edge.port);
    client.write(ask("GET", `${RECEIPT}?wait=landed`, WITH_KEY));
    await until("the wait", () => waits.held === 1);
    client.close();
    await until("its end", () => waits.left === 1);
    expect(edge.server.counters.requestsOpen).toBe(0);
  });

  it("is all clients of a front that is gone", async () => {
    const { edge, front } = await setup();
    edge.submit = () => {};
    const client = await connectRaw(edge.port);
    client.write(REQUEST);
    await until("the request", () => front.requests.open === 1);
    front.requests.abandon();
    expect(edge.server.counters).toMatchObject({ requestsOpen: 0, aborted: 1 });
    client.close();
    await until("its end", () => front.server.counters.connections === 0);
  });
});

it("waits for moved requests before it stops, on both sides", async () => {
  const { edge, front } = await setup();
  ends.splice(0);
  let finish: Parameters<Submit>[1] | null = null;
  edge.submit = (_, done) => {
    finish = done;
  };
  const client = await connectRaw(edge.port);
  const idle = await connectRaw(edge.port);
  client.write(REQUEST);
  await until("the request", () => finish !== null);
  let isStopped = false;
  const stopped = front.stop().then(() => {
    isStopped = true;
  });
  for (let i = 0; i < 20; i += 1) await turn();
  expect(isStopped).toBe(false);
  refuse({ reason: "no_leader", sentence: "none", data: {} })(
    { bytes: BYTES, account: "", keyId: "", receivedNs: 0, maxRetries: null },
    finish as unknown as Parameters<Submit>[1],
  );
  const answer = await client.answer();
  expect([answer.status, answer.headers.get("connection")]).toEqual([503, "close"]);
  await stopped;
  await idle.ended();
});

it("closes connections above the front's own bound, until it gets no more", async () => {
  const edge = await startFixture({ connectionsMax: 1 });
  const front = addFront(edge, { connectionsMax: 2 });
  ends.push(front.stop);
  const clients = [await connectRaw(edge.port), await connectRaw(edge.port)];
  for (const client of clients) {
    client.write(REQUEST);
    expect((await client.answer()).status).toBe(200);
  }
  expect(await (await connectRaw(edge.port)).ended()).toBe("");
  expect(front.server.counters).toMatchObject({ connections: 2, connectionsRefused: 1 });
  expect(edge.server.counters.connections).toBe(0);
  edge.server.removeFront(front.server.descriptor);
  expect((await once(edge.port, REQUEST)).status).toBe(200);
  await until("its end", () => edge.server.counters.connections === 0);
  expect(front.elsewhere.counters.moved).toBe(2);
  for (const client of clients) client.close();
});
