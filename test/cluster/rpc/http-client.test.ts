import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { createRpcHttpClient } from "../../../src/cluster/rpc/http-client.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const end of cleanups.splice(0).reverse()) end();
});

function signal() {
  let fire = (): void => undefined;
  const fired = new Promise<void>((resolve) => {
    fire = resolve;
  });
  return { fired, fire: () => fire() };
}

/** For tests that must not reach the timeout. */
const LONG_TIMEOUT_MS = 60_000;

const TIMEOUT_MS = 2_000;

describe("RPC HTTP client", () => {
  async function setUp(
    act: (request: IncomingMessage, response: ServerResponse) => void,
    requestTimeoutMs = LONG_TIMEOUT_MS,
  ) {
    const server = createServer((request, response) => {
      request.resume().on("end", () => act(request, response));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    // A TCP server's address is always an AddressInfo.
    const { port } = server.address() as AddressInfo;
    const clock = createFakeClock();
    const options = { url: `http://me:word@127.0.0.1:${port}/path?key=1`, bytesMax: 1_000 };
    const httpClient = createRpcHttpClient(clock, { ...options, timeoutMs: requestTimeoutMs });
    cleanups.push(() => httpClient.close());
    cleanups.push(() => server.close().closeAllConnections());
    return { server, httpClient, clock, options, post: () => httpClient.post("{}") };
  }

  it("sends body and headers, and returns status and body", async () => {
    const head: unknown[] = [];
    const { post } = await setUp(({ method, url, headers }, response) => {
      head.push(method, url, headers["content-type"], headers["content-length"]);
      head.push(headers["user-agent"]);
      head.push(Buffer.from(headers.authorization?.split(" ")[1] ?? "", "base64").toString());
      response.writeHead(201).end("yes");
    });
    const { status, retryAfterMs, body } = await post();
    expect([status, retryAfterMs, String(body)]).toEqual([201, 0, "yes"]);
    expect(head).toEqual(["POST", "/path?key=1", "application/json", "2", "touchdown", "me:word"]);
  });

  it("reuses one connection for sequential requests", async () => {
    const ports = new Set<number | undefined>();
    const { post } = await setUp(({ socket }, response) => {
      ports.add(socket.remotePort);
      response.end("yes");
    });
    for (let time = 0; time < 3; time += 1) await post();
    expect(ports.size).toBe(1);
  });

  it("retries if the node closes an idle connection that is being reused", async () => {
    let requestCount = 0;
    const { post } = await setUp(({ socket }, response) => {
      requestCount += 1;
      if (requestCount === 2) socket.resetAndDestroy();
      else response.end(String(requestCount));
    });
    await post();
    expect(String((await post()).body)).toBe("3");
  });

  it("discards connections that were idle when a request on another timed out", async () => {
    const sockets = new Set<unknown>();
    const bothArrived = signal();
    const reused = signal();
    const heldResponses: ServerResponse[] = [];
    const { post, clock } = await setUp(({ socket }, response) => {
      const isNew = !sockets.has(socket);
      sockets.add(socket);
      if (!isNew) reused.fire();
      else if (heldResponses.push(response) === 2) bothArrived.fire();
      else if (heldResponses.length > 2) response.end("new");
    }, TIMEOUT_MS);
    const first = [post(), post()];
    await bothArrived.fired;
    for (const response of heldResponses) response.end("yes");
    await Promise.all(first);
    const failing = expect(post()).rejects.toThrow(`no answer in ${TIMEOUT_MS} ms`);
    await reused.fired;
    clock.advance(TIMEOUT_MS);
    await failing;
    expect(String((await post()).body)).toBe("new");
  });

  it("fails if a new connection is reset", async () => {
    const { post } = await setUp(({ socket }) => socket.resetAndDestroy());
    await expect(post()).rejects.toThrow(/reset/i);
  });

  it("retries at most once if the node closes every connection", async () => {
    let requestCount = 0;
    const { post } = await setUp(({ socket }) => {
      requestCount += 1;
      socket.destroy();
    });
    await expect(post()).rejects.toThrow();
    expect(requestCount).toBeLessThanOrEqual(2);
  });

  it("returns Retry-After in milliseconds, and ignores dates and negative values", async () => {
    const headers = ["7", "Wed, 21 Oct 2026 07:28:00 GMT", "-1"];
    const { post } = await setUp((_, response) => {
      response.writeHead(429, { "retry-after": headers.pop() ?? "" }).end();
    });
    const responses = [await post(), await post(), await post(), await post()];
    expect(responses.map(({ retryAfterMs }) => retryAfterMs)).toEqual([0, 0, 7_000, 0]);
  });

  it("does not follow redirects", async () => {
    const { post } = await setUp((_, response) => {
      response.writeHead(302, { location: "/elsewhere" }).end();
    });
    expect((await post()).status).toBe(302);
  });

  it("decompresses gzip up to the size limit", async () => {
    let size = 1_000;
    const { post } = await setUp((_, response) => {
      response.setHeader("content-encoding", "gzip");
      response.end(gzipSync(Buffer.alloc(size, "x")));
    });
    expect((await post()).body).toHaveLength(1_000);
    size = 1_001;
    await expect(post()).rejects.toThrow("an answer above 1000 B");
  });

  it("fails if a response is truncated", async () => {
    const { post } = await setUp(({ socket }, response) => {
      response.setHeader("content-length", "100");
      response.write("half", () => socket.destroy());
    });
    await expect(post()).rejects.toThrow();
  });

  it("reports the timeout of a response that does not end", async () => {
    const arrived = signal();
    const { post, clock } = await setUp((_, response) => {
      response.write("half", () => arrived.fire());
    }, TIMEOUT_MS);
    const failing = expect(post()).rejects.toThrow(`no answer in ${TIMEOUT_MS} ms`);
    await arrived.fired;
    clock.advance(TIMEOUT_MS);
    await failing;
    expect(clock.pending).toBe(0);
  });

  it("rejects pending requests and cancels its timers when closed", async () => {
    const arrived = signal();
    const { post, httpClient, clock } = await setUp(() => arrived.fire());
    const failing = expect(post()).rejects.toThrow("the client was closed");
    await arrived.fired;
    httpClient.close();
    await failing;
    expect(clock.pending).toBe(0);
  });

  it("fails if the connection is refused", async () => {
    const { server, options, httpClient } = await setUp(() => undefined);
    httpClient.close();
    server.close();
    await once(server, "close");
    const other = createRpcHttpClient(systemClock, { ...options, timeoutMs: 30_000 });
    await expect(other.post("{}")).rejects.toThrow(/refused/i);
    other.close();
  });
});
