import { once as onceOf } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { SetupError } from "../../src/core/errors.ts";
import type { Gate } from "../../src/ingress/gate.ts";
import { createHttpServer } from "../../src/ingress/http.ts";
import type { Submit } from "../../src/ingress/submit.ts";
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
import { freePort } from "../support/ports.ts";
import { receiptSource } from "../support/receipt-source.ts";
import { stub } from "../support/stub.ts";
import { until } from "../support/wait.ts";

const BYTES = new Uint8Array(300);
const REQUEST = post(RAW, BYTES, [WITH_KEY]);

function serverOn(host: string, port: number) {
  return createHttpServer(
    {
      clock: systemClock,
      gate: stub<Gate>({}),
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
  // A port of the kernel's choice is never shared; one that is named is, unless that is forbidden.
  const port = await freePort();
  const first = serverOn("127.0.0.1", port);
  await first.start();
  await expect(serverOn("127.0.0.1", port).start()).rejects.toThrow(SetupError);
  await expect(serverOn("127.0.0.1", port).start()).rejects.toThrow(/taken/);
  const answer = await once(port, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(answer.body).toBe("ok");
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
  expect((await client.answer()).status).toBe(200);
  edge.server.drain();
  client.write(REQUEST);
  const answer = await client.answer();
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).toBe("1");
  expect(answer.headers.get("connection")).toBe("close");
  expect(JSON.parse(answer.body)).toMatchObject({ success: false, reason: "overloaded" });
  await client.ended();
  const rpc = await once(edge.port, post(RPC, "{}", [WITH_KEY]));
  expect(rpc.status).toBe(503);
  expect(JSON.parse(rpc.body).error).toMatchObject({ code: -32603 });
  expect((await once(edge.port, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")).body).toBe("ok");
  expect(edge.submitted).toHaveLength(1);
  await edge.stop();
});

it("finishes what it has in hand before it stops, and takes no new connection", async () => {
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
  const answer = await client.answer();
  expect(answer.status).toBe(200);
  await stopped;
  await idle.ended();
});

it("closes connections above the bound and counts them out again", async () => {
  const edge = await startFixture({ connectionsMax: 2 });
  const first = await connectRaw(edge.port);
  const second = await connectRaw(edge.port);
  for (const client of [first, second]) {
    client.write(REQUEST);
    expect((await client.answer()).status).toBe(200);
  }
  const third = await connectRaw(edge.port);
  expect(await third.ended()).toBe("");
  expect(edge.server.counters).toMatchObject({ connections: 2, connectionsRefused: 1 });
  first.close();
  await until("its end", () => edge.server.counters.connections === 1);
  expect((await once(edge.port, REQUEST)).status).toBe(200);
  second.close();
  await edge.stop();
});

describe("a client that sends requests and takes in no answer", () => {
  /** A connection that is never read from, with so many requests on the way. */
  async function flood(port: number, request: string, count: number): Promise<Socket> {
    const socket = connect(port, "127.0.0.1").pause();
    socket.on("error", () => {});
    await onceOf(socket, "connect");
    socket.write(request.repeat(count));
    return socket;
  }

  it("is closed before its answers fill the memory", async () => {
    const edge = await startFixture();
    const socket = await flood(edge.port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", REQUESTS);
    await until("its end", () => edge.server.counters.connections === 0);
    expect(edge.server.counters.requests).toBeLessThan(REQUESTS);
    socket.destroy();
    await edge.stop();
  });

  it("is not read from any more where its answers have no body", async () => {
    const edge = await startFixture();
    const sockets = [];
    for (const method of ["HEAD", "OPTIONS"]) {
      const before = edge.server.counters.requests;
      const request = `${method} / HTTP/1.1\r\nHost: x\r\n\r\n`;
      sockets.push(await flood(edge.port, request, REQUESTS));
      const other = await connectRaw(edge.port);
      // Each turn of the server's would read more of the flood.
      for (let turn = 0; turn < TURNS; turn += 1) {
        other.write("GET /ping HTTP/1.1\r\nHost: x\r\n\r\n");
        expect((await other.answer()).body).toBe("ok");
      }
      other.close();
      expect(edge.server.counters.requests - before - TURNS).toBeLessThan(REQUESTS);
    }
    for (const socket of sockets) socket.destroy();
    await edge.stop();
  });

  /** More than the kernel holds answers of, and more than the library reads in one turn. */
  const REQUESTS = 60_000;
  const TURNS = 30;
});

it("counts requests, refusals by reason, and what was accepted", async () => {
  const edge = await startFixture();
  await once(edge.port, REQUEST);
  await once(edge.port, post(RAW, BYTES, []));
  await once(edge.port, "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(edge.server.counters).toMatchObject({ requests: 3, requestsOpen: 0, accepted: 1 });
  expect(edge.server.refusals).toMatchObject({ unauthorized: 1, not_found: 1, internal: 0 });
  await edge.stop();
});
