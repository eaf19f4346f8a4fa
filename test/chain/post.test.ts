import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { createPoster } from "../../src/chain/post.ts";

const endings: (() => unknown)[] = [];
afterEach(() => {
  for (const end of endings.splice(0).reverse()) end();
});

async function setUp(act: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer((request, response) => {
    request.resume().on("end", () => act(request, response));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // A TCP server's address is never a path.
  const { port } = server.address() as AddressInfo;
  const poster = createPoster(`http://127.0.0.1:${port}/`, 1_000);
  endings.push(() => poster.close());
  endings.push(() => server.close().closeAllConnections());
  const ask = (signal = new AbortController().signal) =>
    poster.post({ "content-type": "application/json" }, "{}", signal);
  return { server, ask };
}

describe("a post", () => {
  it("carries body and headers, and takes status and body back", async () => {
    const seen: unknown[] = [];
    const { ask } = await setUp(({ method, headers }, response) => {
      seen.push(method, headers["content-type"], headers["content-length"]);
      response.writeHead(201, "Fine").end("yes");
    });
    const { status, statusText, body } = await ask();
    expect([status, statusText, String(body)]).toEqual([201, "Fine", "yes"]);
    expect(seen).toEqual(["POST", "application/json", "2"]);
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

  it("fails where a connection that was never good is reset", async () => {
    const { ask } = await setUp(({ socket }) => socket.resetAndDestroy());
    await expect(ask()).rejects.toThrow(/ECONNRESET/);
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

  it("fails with the reason of an abort, before and during the answer", async () => {
    const { ask } = await setUp((_, response) => void response.write("half"));
    await expect(ask(AbortSignal.abort(new Error("never")))).rejects.toThrow("never");
    const later = new AbortController();
    const failing = expect(ask(later.signal)).rejects.toThrow("enough");
    setImmediate(() => later.abort(new Error("enough")));
    await failing;
  });
});
