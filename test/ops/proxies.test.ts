/**
 * The configurations for nginx and HAProxy, run by those programs before two edges that are
 * restarted one after the other under load. `npm run load -- --proxy NAME --restarts N` does so
 * at a rate.
 */

import { createServer } from "node:http";
import { connect } from "node:http2";
import { Agent, request } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  type EdgeProcess,
  type Network,
  startEdgeProcess,
  startNetwork,
  untilReady,
} from "../support/edge-process.ts";
import { RAW_PATH, untilResponse, WIDE_KEY } from "../support/flow.ts";
import { freePort } from "../support/ports.ts";
import {
  hasProxy,
  PROXIES,
  type ProxyName,
  type RunningProxy,
  startProxy,
} from "../support/proxies.ts";
import { until } from "../support/wait.ts";

const CLIENTS = 4;
/** No transaction. */
const BODY = Uint8Array.of(1);
const RECEIPTS_PATH = "/api/v1/transactions";

interface Reply {
  /** 0 when there was no response. */
  readonly status: number;
  readonly text: string;
  /** `access-control-allow-origin`, without which a browser's script does not see the response. */
  readonly allowedOrigin?: string | undefined;
}

type Clients = ReturnType<typeof createClients>;

/** Clients of a proxy over TLS, each with one connection that is kept. */
function createClients({ port, certificate }: RunningProxy) {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: CLIENTS,
    ca: certificate,
    scheduling: "fifo",
  });
  return {
    send: (method: string, path: string, body: Uint8Array | null): Promise<Reply> =>
      new Promise((resolve) => {
        const headers = { "api-x-token": WIDE_KEY };
        const sent = request({ agent, method, host: "127.0.0.1", port, path, headers }, (from) => {
          let text = "";
          from.on("data", (chunk: Buffer) => {
            text += chunk.toString();
          });
          from.on("error", (error) => resolve({ status: 0, text: String(error) }));
          const allowedOrigin = from.headers["access-control-allow-origin"];
          from.on("end", () => resolve({ status: from.statusCode ?? 0, text, allowedOrigin }));
        });
        sent.on("error", (error) => resolve({ status: 0, text: String(error) }));
        sent.end(body ?? undefined);
      }),
    close: () => agent.destroy(),
  };
}

let network: Network;
/** The signatures that arrived at a leader, in base64. */
const arrived = new Set<string>();
const signatureOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.subarray(1, 65)).toString("base64");

beforeAll(async () => {
  network = await startNetwork(2);
  for (const leader of network.leaders) {
    leader.onTransaction((bytes) => void arrived.add(signatureOf(bytes)));
  }
});
afterAll(async () => {
  await network?.stop();
});

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** An edge that drains for two seconds, and is ready. */
async function startEdge(httpPort: number): Promise<EdgeProcess> {
  const http = 'drain_grace = "2s"\nconnections_per_address = 20000';
  const edge = await startEdgeProcess(network, { httpPort, http });
  ends.push(() => edge.remove());
  await untilReady(edge);
  return edge;
}

/** How many requests an edge has decided. */
async function requestsOf(edge: EdgeProcess): Promise<number> {
  const samples = (await edge.metrics()).get("touchdown_requests_total")?.samples ?? [];
  return samples.reduce((sum, { value }) => sum + value, 0);
}

const atLeast = (least: number) => (count: number) => count >= least;

/** Clients of a proxy that has found an edge. */
async function untilServed(proxy: RunningProxy): Promise<Clients> {
  const clients = createClients(proxy);
  ends.push(() => clients.close());
  await untilResponse(
    "a response through the proxy",
    () => clients.send("GET", "/ping", null),
    ({ status }) => {
      if (!proxy.isRunning) throw new Error(`the proxy ended: ${proxy.output()}`);
      return status === 200;
    },
  );
  return clients;
}

/** Transactions until it is stopped; the replies by status, and what was accepted. */
function startLoad(send: (bytes: Uint8Array) => Promise<Reply>) {
  const replies = new Map<string, number>();
  const accepted: Uint8Array[] = [];
  let isOver = false;
  async function once(): Promise<void> {
    const { bytes } = network.tipped();
    const { status, text } = await send(bytes);
    const what = status === 200 ? "200" : `${status} ${text.slice(0, 200)}`;
    replies.set(what, (replies.get(what) ?? 0) + 1);
    if (status === 200) accepted.push(bytes);
  }
  async function client(): Promise<void> {
    while (!isOver) await once();
  }
  const done = Promise.all(Array.from({ length: CLIENTS }, client));
  return {
    count: () => [...replies.values()].reduce((sum, each) => sum + each, 0),
    async stop() {
      isOver = true;
      await done;
      return { replies, accepted };
    },
  };
}

describe.each(Object.keys(PROXIES) as ProxyName[])("%s in front of two edges", (name) => {
  const canRun = hasProxy(name) || process.env["CI"] === "true";

  it.skipIf(!canRun)("loses no request while each edge is restarted", async () => {
    const ports = [await freePort(), await freePort()] as const;
    const edges = [await startEdge(ports[0]), await startEdge(ports[1])];
    const proxy = await startProxy(name, ports);
    ends.push(() => proxy.stop());
    const clients = await untilServed(proxy);

    const load = startLoad((bytes) => clients.send("POST", RAW_PATH, bytes));
    for (const index of [0, 1]) {
      const before = load.count();
      await until("some responses", () => load.count() > before + 100);
      edges[index]?.child.kill("SIGTERM");
      expect(await edges[index]?.exited).toBe(0);
      const edge = await startEdge(ports[index] ?? 0);
      edges[index] = edge;
      // Only then does the proxy know that it serves again, and the other may be restarted.
      await untilResponse("requests at the restarted edge", () => requestsOf(edge), atLeast(100));
    }
    const { replies, accepted } = await load.stop();
    expect([...replies.keys()]).toEqual(["200"]);
    await until("each accepted transaction at a leader", () =>
      accepted.every((bytes) => arrived.has(signatureOf(bytes))),
    );
  });

  it.skipIf(!canRun)("finds each receipt at the edge that has it", async () => {
    const ports = [await freePort(), await freePort()] as const;
    for (const port of ports) await startEdge(port);
    const proxy = await startProxy(name, ports);
    ends.push(() => proxy.stop());
    const clients = await untilServed(proxy);
    const receiptOf = (signature: string) =>
      clients.send("GET", `${RECEIPTS_PATH}/${signature}`, null);
    for (let sent = 0; sent < 12; sent += 1) {
      const { bytes, signature } = network.tipped();
      expect(await clients.send("POST", RAW_PATH, bytes)).toMatchObject({ status: 200 });
      expect(await receiptOf(signature)).toMatchObject({ status: 200 });
    }
    // One that neither edge has.
    const reply = await receiptOf(network.tipped().signature);
    expect(reply.status).toBe(404);
    expect(reply.text).toContain(`"reason":"not_found"`);
  });

  it.skipIf(!canRun)("refuses as an edge does while no edge answers", async () => {
    const ports = [await freePort(), await freePort()] as const;
    const proxy = await startProxy(name, ports);
    ends.push(() => proxy.stop());
    const clients = createClients(proxy);
    ends.push(() => clients.close());
    const { bytes } = network.tipped();
    const refused = (path: string) =>
      untilResponse(
        "the proxy's own response",
        () => clients.send("POST", path, bytes),
        ({ status }) => status !== 0,
      );
    const raw = await refused(RAW_PATH);
    expect(raw).toMatchObject({ status: 503, allowedOrigin: "*" });
    expect(JSON.parse(raw.text)).toMatchObject({ success: false, reason: "overloaded" });
    for (const path of ["/", "/fast", "/api/v1/sendTransaction"]) {
      const { text, ...reply } = await refused(path);
      expect({ path, ...reply }).toEqual({ path, status: 503, allowedOrigin: "*" });
      expect(JSON.parse(text)).toMatchObject({
        jsonrpc: "2.0",
        id: null,
        error: { code: -32603, data: { reason: "overloaded", retryable: true } },
      });
    }
  });

  it.skipIf(!canRun)("logs no key of a query, whether edges answer or not", async () => {
    const port = await freePort();
    const proxy = await startProxy(name, [port, await freePort()]);
    ends.push(() => proxy.stop());
    const clients = createClients(proxy);
    ends.push(() => clients.close());
    const send = (method: string, path: string) =>
      clients.send(method, `${path}?api-key=${WIDE_KEY}`, method === "GET" ? null : BODY);
    await untilResponse(
      "the proxy's own response",
      () => send("GET", "/ping"),
      ({ status }) => status !== 0,
    );
    for (const path of [RAW_PATH, "/"]) expect((await send("POST", path)).status).toBe(503);
    await startEdge(port);
    await untilResponse(
      "an edge's response",
      () => send("GET", "/ping"),
      ({ status }) => status === 200,
    );
    for (let count = 0; count < 8; count += 1) await send("POST", RAW_PATH);
    // nginx writes its access log once a second; HAProxy logs no requests at this level.
    if (name === "nginx") {
      await until("requests in the log", () => proxy.logs().includes(RAW_PATH));
    }
    expect(proxy.logs()).not.toContain(WIDE_KEY);
  });

  it.skipIf(!canRun)("resets no HTTP/2 stream when it refuses by itself", async () => {
    const proxy = await startProxy(name, [await freePort(), await freePort()]);
    ends.push(() => proxy.stop());
    const clients = createClients(proxy);
    ends.push(() => clients.close());
    await untilResponse(
      "the proxy's own response",
      () => clients.send("GET", "/ping", null),
      ({ status }) => status !== 0,
    );
    const session = connect(`https://127.0.0.1:${proxy.port}`, { ca: proxy.certificate });
    ends.push(() => session.close());
    for (let count = 0; count < 20; count += 1) {
      const stream = session.request({
        ":method": "POST",
        ":path": RAW_PATH,
        "content-length": 200,
      });
      let status = 0;
      stream.on("response", (headers) => {
        status = headers[":status"] ?? 0;
      });
      let text = "";
      stream.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      // A proxy that does not wait for the body resets nearly each stream.
      stream.end(Buffer.alloc(200));
      await new Promise((resolve) => stream.once("close", resolve));
      expect({ status, reset: stream.rstCode }).toEqual({ status: 503, reset: 0 });
      expect(text).toContain(`"reason":"overloaded"`);
    }
  });

  it.skipIf(!canRun)("speaks HTTP/2 to clients and HTTP/1.1 to edges", async () => {
    const edge = await startEdge(await freePort());
    const proxy = await startProxy(name, [edge.port, edge.port]);
    ends.push(() => proxy.stop());
    await untilServed(proxy);
    const session = connect(`https://127.0.0.1:${proxy.port}`, { ca: proxy.certificate });
    ends.push(() => session.close());
    const { bytes } = network.tipped();
    const stream = session.request({
      ":method": "POST",
      ":path": RAW_PATH,
      "content-length": bytes.length,
      "api-x-token": WIDE_KEY,
    });
    stream.end(bytes);
    let text = "";
    for await (const chunk of stream) text += String(chunk);
    expect(session.alpnProtocol).toBe("h2");
    expect(text).toContain(`"success":true`);
  });

  it.skipIf(!canRun)("passes each receipt of a stream on when it comes", async () => {
    const edge = await startEdge(await freePort());
    const proxy = await startProxy(name, [edge.port, edge.port]);
    ends.push(() => proxy.stop());
    const clients = await untilServed(proxy);
    let streamed = "";
    const agent = new Agent({ ca: proxy.certificate });
    ends.push(() => agent.destroy());
    const headers = { "api-x-token": WIDE_KEY };
    const path = "/api/v1/receipts";
    request({ agent, host: "127.0.0.1", port: proxy.port, path, headers }, (from) => {
      from.on("data", (chunk: Buffer) => {
        streamed += chunk.toString();
      });
      from.on("error", () => undefined);
    })
      .on("error", () => undefined)
      .end();
    await until("the stream's first bytes", () => streamed !== "");
    const { bytes, signature } = network.tipped();
    expect(await clients.send("POST", RAW_PATH, bytes)).toMatchObject({ status: 200 });
    await until("the receipt in the stream", () => streamed.includes(signature));
  });
});

describe("nginx in front of an edge that is away and one that refuses", () => {
  const canRun = hasProxy("nginx") || process.env["CI"] === "true";

  it.skipIf(!canRun)("passes on what the edge says, and refuses nothing by itself", async () => {
    const text = '{"success":false,"error":"busy","reason":"overloaded"}';
    const bodies: Buffer[] = [];
    const busy = createServer((asked, response) => {
      asked.on("data", (chunk: Buffer) => bodies.push(chunk));
      asked.on("end", () => response.writeHead(503).end(text));
    });
    ends.push(() => busy.close());
    await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
    const { port } = busy.address() as AddressInfo;
    const proxy = await startProxy("nginx", [await freePort(), port]);
    ends.push(() => proxy.stop());
    const clients = createClients(proxy);
    ends.push(() => clients.close());
    const send = () => clients.send("POST", RAW_PATH, Buffer.from("transaction"));
    await untilResponse("a response", send, ({ status }) => status !== 0);
    bodies.length = 0;
    const replies: Reply[] = [];
    // The order in which nginx tries the servers goes round.
    for (let count = 0; count < 16; count += 1) replies.push(await send());
    expect(replies).toEqual(replies.map(() => ({ status: 503, text })));
    expect(new Set(bodies.map(String))).toEqual(new Set(["transaction"]));
  });
});

describe("HAProxy in front of the dashboard", () => {
  const canRun = hasProxy("haproxy") || process.env["CI"] === "true";

  it.skipIf(!canRun)("says where a browser is, and makes no change twice", async () => {
    const seen: { readonly method: string | undefined; readonly from: unknown }[] = [];
    const control = createServer((asked, response) => {
      seen.push({ method: asked.method, from: asked.headers["x-forwarded-for"] });
      response.writeHead(asked.method === "POST" ? 503 : 200).end("{}");
    });
    ends.push(() => control.close());
    await new Promise<void>((resolve) => control.listen(0, "127.0.0.1", resolve));
    const { port } = control.address() as AddressInfo;
    const proxy = await startProxy("haproxy", [await freePort(), await freePort()], port);
    ends.push(() => proxy.stop());
    const agent = new Agent({ ca: proxy.certificate });
    ends.push(() => agent.destroy());
    const send = (method: string): Promise<number> =>
      new Promise((resolve) => {
        const headers = { "x-forwarded-for": "192.0.2.9" };
        const at = { host: "127.0.0.1", port: proxy.dashboardPort, path: "/" };
        request({ agent, method, headers, ...at }, (from) => {
          from.resume();
          from.on("end", () => resolve(from.statusCode ?? 0));
        })
          .on("error", () => resolve(0))
          .end();
      });
    await untilResponse(
      "a page",
      () => send("GET"),
      (status) => status === 200,
    );
    expect(await send("POST")).toBe(503);
    expect(seen.filter(({ method }) => method === "POST")).toEqual([
      { method: "POST", from: "127.0.0.1" },
    ]);
  });
});
