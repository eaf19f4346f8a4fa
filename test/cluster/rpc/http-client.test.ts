import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { createRpcHttpClient, type RpcHttpOptions } from "../../../src/cluster/rpc/http-client.ts";
import { createNativeRpcHttpClient } from "../../../src/cluster/rpc/native-http-client.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { native } from "../../native/addon.ts";
import { createFakeClock, type FakeClock } from "../../support/fake-clock.ts";

const endings: (() => unknown)[] = [];
afterEach(() => {
  for (const end of endings.splice(0).reverse()) end();
});

function signal() {
  let tell = (): void => undefined;
  const told = new Promise<void>((resolve) => {
    tell = resolve;
  });
  return { told, tell: () => tell() };
}

/** For tests that must not depend on a deadline. */
const GENEROUS_MS = 60_000;

/** Both RPC clients; they differ in the clock of the deadline. */
const POSTERS = [
  {
    name: "a post",
    here: true,
    timeoutMs: 2_000,
    create: (clock: Clock, options: RpcHttpOptions) => createRpcHttpClient(clock, options),
    pass: (clock: FakeClock) => clock.advance(2_000),
  },
  {
    name: "a post of the native engine",
    here: native !== null,
    // Real time, in which a busy machine must also respond.
    timeoutMs: 2_000,
    create(_: Clock, options: RpcHttpOptions) {
      if (native === null) throw new Error("the native engine is not built");
      return createNativeRpcHttpClient(native, options);
    },
    pass: () => undefined,
  },
] as const;

describe.each(POSTERS.filter(({ here }) => here))("$name", ({ create, timeoutMs, pass }) => {
  async function setUp(
    act: (request: IncomingMessage, response: ServerResponse) => void,
    patienceMs = GENEROUS_MS,
  ) {
    const server = createServer((request, response) => {
      request.resume().on("end", () => act(request, response));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    // A TCP server's address is never a path.
    const { port } = server.address() as AddressInfo;
    const clock = createFakeClock();
    const options = { url: `http://me:word@127.0.0.1:${port}/path?key=1`, bytesMax: 1_000 };
    const httpClient = create(clock, { ...options, timeoutMs: patienceMs });
    endings.push(() => httpClient.close());
    endings.push(() => server.close().closeAllConnections());
    return { server, httpClient, clock, options, ask: () => httpClient.post("{}") };
  }

  it("carries body and headers, and takes status and body back", async () => {
    const seen: unknown[] = [];
    const { ask } = await setUp(({ method, url, headers }, response) => {
      seen.push(method, url, headers["content-type"], headers["content-length"]);
      seen.push(headers["user-agent"]);
      seen.push(Buffer.from(headers.authorization?.split(" ")[1] ?? "", "base64").toString());
      response.writeHead(201).end("yes");
    });
    const { status, retryAfterMs, body } = await ask();
    expect([status, retryAfterMs, String(body)]).toEqual([201, 0, "yes"]);
    expect(seen).toEqual(["POST", "/path?key=1", "application/json", "2", "touchdown", "me:word"]);
  });

  it("uses one connection for questions that follow each other", async () => {
    const ports = new Set<number | undefined>();
    const { ask } = await setUp(({ socket }, response) => {
      ports.add(socket.remotePort);
      response.end("yes");
    });
    for (let time = 0; time < 3; time += 1) await ask();
    expect(ports.size).toBe(1);
  });

  it("asks again where the node closes an idle connection as it is used", async () => {
    let asked = 0;
    const { ask } = await setUp(({ socket }, response) => {
      asked += 1;
      if (asked === 2) socket.resetAndDestroy();
      else response.end(String(asked));
    });
    await ask();
    expect(String((await ask()).body)).toBe("3");
  });

  it("leaves connections that were idle when another went dead", async () => {
    const sockets = new Set<unknown>();
    const both = signal();
    const dead = signal();
    const held: ServerResponse[] = [];
    const { ask, clock } = await setUp(({ socket }, response) => {
      const isNew = !sockets.has(socket);
      sockets.add(socket);
      if (!isNew) dead.tell();
      else if (held.push(response) === 2) both.tell();
      else if (held.length > 2) response.end("new");
    }, timeoutMs);
    const first = [ask(), ask()];
    await both.told;
    for (const response of held) response.end("yes");
    await Promise.all(first);
    const failing = expect(ask()).rejects.toThrow(`no answer in ${timeoutMs} ms`);
    await dead.told;
    pass(clock);
    await failing;
    expect(String((await ask()).body)).toBe("new");
  });

  it("fails where a connection that was never good is reset", async () => {
    const { ask } = await setUp(({ socket }) => socket.resetAndDestroy());
    await expect(ask()).rejects.toThrow(/reset/i);
  });

  it("asks once more at the most where the node closes every connection", async () => {
    let asked = 0;
    const { ask } = await setUp(({ socket }) => {
      asked += 1;
      socket.destroy();
    });
    await expect(ask()).rejects.toThrow();
    expect(asked).toBeLessThanOrEqual(2);
  });

  it("tells for how long a node wants to be left alone, and takes no date for that", async () => {
    const told = ["7", "Wed, 21 Oct 2026 07:28:00 GMT", "-1"];
    const { ask } = await setUp((_, response) => {
      response.writeHead(429, { "retry-after": told.pop() ?? "" }).end();
    });
    const answers = [await ask(), await ask(), await ask(), await ask()];
    expect(answers.map(({ retryAfterMs }) => retryAfterMs)).toEqual([0, 0, 7_000, 0]);
  });

  it("follows no redirect", async () => {
    const { ask } = await setUp((_, response) => {
      response.writeHead(302, { location: "/elsewhere" }).end();
    });
    expect((await ask()).status).toBe(302);
  });

  it("unpacks gzip, up to the bound and no further", async () => {
    let size = 1_000;
    const { ask } = await setUp((_, response) => {
      response.setHeader("content-encoding", "gzip");
      response.end(gzipSync(Buffer.alloc(size, "x")));
    });
    expect((await ask()).body).toHaveLength(1_000);
    size = 1_001;
    await expect(ask()).rejects.toThrow("an answer above 1000 B");
  });

  it("fails when an answer ends half way", async () => {
    const { ask } = await setUp(({ socket }, response) => {
      response.setHeader("content-length", "100");
      response.write("half", () => socket.destroy());
    });
    await expect(ask()).rejects.toThrow();
  });

  it("says how long it waited for an answer that does not end", async () => {
    const asked = signal();
    const { ask, clock } = await setUp((_, response) => {
      response.write("half", () => asked.tell());
    }, timeoutMs);
    const failing = expect(ask()).rejects.toThrow(`no answer in ${timeoutMs} ms`);
    await asked.told;
    pass(clock);
    await failing;
    expect(clock.pending).toBe(0);
  });

  it("fails when it is closed, with nothing left behind", async () => {
    const asked = signal();
    const { ask, httpClient, clock } = await setUp(() => asked.tell());
    const failing = expect(ask()).rejects.toThrow("the client was closed");
    await asked.told;
    httpClient.close();
    await failing;
    expect(clock.pending).toBe(0);
  });

  it("fails where nobody listens", async () => {
    const { server, options, httpClient } = await setUp(() => undefined);
    httpClient.close();
    server.close();
    await once(server, "close");
    const other = create(systemClock, { ...options, timeoutMs: 30_000 });
    await expect(other.post("{}")).rejects.toThrow(/refused/i);
    other.close();
  });
});
