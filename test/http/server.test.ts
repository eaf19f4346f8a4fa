import { once as onceOf } from "node:events";
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { SetupError } from "../../src/core/errors.ts";
import { EMPTY_RESPONSES_BURST, RESPONSES_PER_SLICE_MAX } from "../../src/http/limits.ts";
import { createHttpServer } from "../../src/http/server.ts";
import type { Submit } from "../../src/http/submit/submission.ts";
import type { AccessControl } from "../../src/limits/access-control.ts";
import {
  accept,
  connectRaw,
  once,
  post,
  RAW,
  RPC,
  SIGNATURE,
  startFixture,
  WITH_KEY,
} from "../conformance/http-fixture.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { freePort } from "../support/ports.ts";
import { receiptSource } from "../support/receipt-source.ts";
import { stub } from "../support/stub.ts";
import { testIngressEngine } from "../support/test-ingress.ts";
import { until } from "../support/wait.ts";

const BYTES = new Uint8Array(300);
const REQUEST = post(RAW, BYTES, [WITH_KEY]);

function serverOn(host: string, port: number) {
  return createHttpServer(
    {
      clock: systemClock,
      access: stub<AccessControl>({}),
      submit: accept,
      receipts: receiptSource(),
      tip: { accounts: [], lamportsMin: 1 },
      log: { info: () => {}, warn: () => {}, error: () => {} },
      latency: null,
    },
    { host, port, requestDeadlineMs: 1_000, version: "0", region: "test" },
  );
}

it("does not share its port with a second server", async () => {
  // A port chosen by the kernel is never shared; an explicit one is, unless that is forbidden.
  const port = await freePort();
  const first = serverOn("127.0.0.1", port);
  await first.start();
  await expect(serverOn("127.0.0.1", port).start()).rejects.toThrow(SetupError);
  await expect(serverOn("127.0.0.1", port).start()).rejects.toThrow(/in use/);
  const response = await once(port, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(response.body).toBe("ok");
  await first.stop();
});

it("gives its port back when it stops", async () => {
  const port = await freePort();
  const first = serverOn("127.0.0.1", port);
  expect(await first.start()).toEqual({ port });
  await once(port, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n");
  await first.stop();
  const second = serverOn("127.0.0.1", port);
  expect(await second.start()).toEqual({ port });
  await second.stop();
});

it("refuses an address that is not there", async () => {
  await expect(serverOn("256.0.0.1", 0).start()).rejects.toThrow(SetupError);
});

it("refuses new work with 503 and ends the connection while it drains", async () => {
  const edge = await startFixture();
  const client = await connectRaw(edge.port);
  client.write(REQUEST);
  expect((await client.response()).status).toBe(200);
  edge.server.rejectNewWork();
  edge.ingress?.ingressThreads.rejectNewWork();
  let accepted = 1;
  if (edge.ingress !== null) {
    // The thread learns of the drain slightly later; what it accepted before is not new work.
    while (accepted < 1_000 && (await once(edge.port, REQUEST)).status === 200) accepted += 1;
  }
  client.write(REQUEST);
  const response = await client.response();
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toBe("1");
  expect(response.headers.get("connection")).toBe("close");
  expect(JSON.parse(response.body)).toMatchObject({ success: false, reason: "overloaded" });
  await client.ended();
  const rpc = await once(edge.port, post(RPC, "{}", [WITH_KEY]));
  expect(rpc.status).toBe(503);
  expect(JSON.parse(rpc.body).error).toMatchObject({ code: -32603 });
  expect((await once(edge.port, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")).body).toBe("ok");
  expect(edge.submitted).toHaveLength(accepted);
  await edge.stop();
});

it("finishes pending requests before it stops, and accepts no new connection", async () => {
  const edge = await startFixture();
  let finish: Parameters<Submit>[1] | null = null;
  const started = new Promise<void>((resolve) => {
    edge.submit = (_, done) => {
      finish = done;
      resolve();
    };
  });
  const client = await connectRaw(edge.port);
  const idle = await connectRaw(edge.port);
  client.write(REQUEST);
  await started;
  let isStopped = false;
  const stopped = edge.stop().then(() => {
    isStopped = true;
  });
  await expect(fetch(`${edge.url}/ping`, { signal: AbortSignal.timeout(60_000) })).rejects.toThrow(
    /fetch failed/,
  );
  expect(isStopped).toBe(false);
  (finish as Parameters<Submit>[1] | null)?.({ kind: "accepted", signature: SIGNATURE });
  const response = await client.response();
  expect(response.status).toBe(200);
  await stopped;
  await idle.ended();
});

it("closes connections above the bound and counts them out again", async () => {
  const edge = await startFixture({ connectionsMax: 2 });
  const first = await connectRaw(edge.port);
  const second = await connectRaw(edge.port);
  for (const client of [first, second]) {
    client.write(REQUEST);
    expect((await client.response()).status).toBe(200);
  }
  const third = await connectRaw(edge.port);
  expect(await third.ended()).toBe("");
  expect(edge.clients).toMatchObject({ connections: 2, connectionsRejected: 1 });
  first.close();
  await until("its end", () => edge.clients.connections === 1);
  expect((await once(edge.port, REQUEST)).status).toBe(200);
  second.close();
  await edge.stop();
});

describe("a client that sends requests without awaiting their answers", () => {
  /**
   * How many of `count` requests are served, a few at a time, until a non-reading one is closed.
   */
  async function servedUnread(request: string, count: number): Promise<number> {
    const edge = await startFixture();
    const { clients } = edge;
    const { counters } = edge.server;
    const socket = connect(edge.port, "127.0.0.1").setNoDelay(true).pause();
    socket.on("error", () => {});
    await until("its connection", () => clients.connections === 1);
    for (let sent = 0; sent < count && counters.requests === sent; sent += FEW) {
      socket.write(request.repeat(FEW));
      const isOver = () => counters.requests >= sent + FEW || clients.connections === 0;
      for (let turns = 0; turns < TURNS_MAX && !isOver(); turns += 1) await turn();
      await until("their answers, or its end", isOver);
    }
    expect(clients.connections).toBe(0);
    socket.destroy();
    await edge.stop();
    return counters.requests;
  }

  it("is closed before its answers fill the memory", async () => {
    const served = await servedUnread("GET / HTTP/1.1\r\nHost: x\r\n\r\n", REQUESTS);
    expect(served).toBeLessThan(REQUESTS);
  });

  it("is closed as soon as that costs memory where its answers have no body", async () => {
    for (const method of ["HEAD", "OPTIONS"]) {
      const request = `${method} / HTTP/1.1\r\nHost: x\r\n\r\n`;
      const served = await servedUnread(request, 2 * EMPTY_RESPONSES_BURST);
      expect(served).toBeGreaterThanOrEqual(EMPTY_RESPONSES_BURST);
      expect(served).toBeLessThan(1.5 * EMPTY_RESPONSES_BURST);
    }
  });

  it("has an answer to one without a body too many, if it awaits each", async () => {
    const edge = await startFixture({ clock: createFakeClock() });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const [method, status] of [["HEAD", 200] as const, ["OPTIONS", 204] as const]) {
      const cutBefore = edge.server.counters.emptyBodyClosed;
      let headers: IncomingHttpHeaders = {};
      while (edge.server.counters.emptyBodyClosed === cutBefore) {
        const asked = request({ port: edge.port, path: "/api/v1/tip", method, agent }).end();
        const [response] = (await onceOf(asked, "response")) as [IncomingMessage];
        expect(response.statusCode).toBe(status);
        await onceOf(response.resume(), "end");
        ({ headers } = response);
      }
      expect(headers.connection).toBe("close");
      expect(headers["content-length"]).toBe(method === "HEAD" ? TIP_BYTES : undefined);
    }
    agent.destroy();
    await edge.stop();
  });

  // An ingress thread proxies one after the other, so the main thread is free between any two: it
  // answers all.
  it.skipIf(testIngressEngine !== null)(
    "does not monopolize the thread, although it reads the responses",
    async () => {
      const edge = await startFixture();
      for (const method of ["GET", "HEAD", "OPTIONS"]) {
        const before = edge.server.counters.requests;
        const client = await connectRaw(edge.port);
        client.write(`${method} /ping HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(1_000));
        await client.ended();
        const served = edge.server.counters.requests - before;
        expect(served).toBeGreaterThan(1);
        expect(served).toBeLessThanOrEqual(RESPONSES_PER_SLICE_MAX + 1);
      }
      expect(edge.server.counters.requestsOpen).toBe(0);
      await edge.stop();
    },
  );

  /** Of a page that no ingress thread answers itself. */
  const TIP_BYTES = "56";
  /** More than the kernel buffers responses for. */
  const REQUESTS = 60_000;
  /** Less than the limit of a slice. */
  const FEW = RESPONSES_PER_SLICE_MAX / 4;
  const TURNS_MAX = 3_000;
});

it("counts requests, refusals by reason, and what was accepted", async () => {
  const edge = await startFixture();
  await once(edge.port, REQUEST);
  await once(edge.port, post(RAW, BYTES, []));
  await once(edge.port, "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n");
  // An ingress thread counts what it refuses itself.
  const all = [edge.server, ...(edge.ingress?.ingressThreads.stats ?? [])];
  const sum = (of: (one: (typeof all)[number]) => number) =>
    all.reduce((total, one) => total + of(one), 0);
  const { requestsOpen, accepted } = edge.server.counters;
  const requests = sum(({ counters }) => counters.requests);
  expect({ requests, requestsOpen, accepted }).toEqual({
    requests: 3,
    requestsOpen: 0,
    accepted: 1,
  });
  const reasons = ["unauthorized", "not_found", "internal"] as const;
  expect(reasons.map((reason) => sum(({ rejections }) => rejections[reason]))).toEqual([1, 1, 0]);
  await edge.stop();
});
