/**
 * Agave's synchronous `RpcClient`, unchanged, sends to an edge again after it said nothing for a
 * while. It keeps a connection for 30 s, and does not repeat a request whose connection has ended.
 */

import { spawn } from "node:child_process";
import { connect, createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadNative } from "../../src/native/load.ts";
import { ENGINE, type Flow, startFlow, WIDE_KEY } from "../support/flow.ts";
import { buildClient, leaderProgram } from "./build.ts";

const isNative = ENGINE === "native" && loadNative().kind === "loaded";

describe.skipIf(!isNative)("the synchronous RpcClient at an edge", () => {
  let flow: Flow;
  const proxies: Server[] = [];
  beforeAll(async () => {
    buildClient();
    flow = await startFlow({
      leaderCount: 2,
      edge: { http: { threads: 1 }, send: { engine: "native" } },
    });
  });
  afterAll(async () => {
    for (const proxy of proxies) proxy.close();
    await flow?.stop();
  });

  /** Before the edge; counts connections. */
  async function startProxy() {
    const { port } = new URL(flow.url);
    const seen = { connections: 0 };
    const proxy = createServer((client) => {
      seen.connections += 1;
      const edge = connect(Number(port), "127.0.0.1");
      client.pipe(edge).pipe(client);
      for (const socket of [client, edge]) socket.on("error", () => socket.destroy());
    });
    proxies.push(proxy);
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const address = proxy.address();
    return { seen, port: typeof address === "object" ? (address?.port ?? 0) : 0 };
  }

  // It waits on the real clock: the kernel and the client have no other one for an idle connection.
  it.concurrent.each([
    [14, 1],
    // The client itself opens another one.
    [60, 2],
  ])("sends after %d s of silence, over %d connections", async (seconds, connections) => {
    const { seen, port } = await startProxy();
    const sent = [flow.tipped(), flow.tipped()];
    const url = `http://127.0.0.1:${port}/?api-key=${WIDE_KEY}`;
    const program = join(dirname(leaderProgram()), "rpc-client");
    const child = spawn(program, [url, String(seconds)]);
    let [out, err] = ["", ""];
    child.stdout.on("data", (data: Buffer) => {
      out += data.toString();
    });
    child.stderr.on("data", (data: Buffer) => {
      err += data.toString();
    });
    // It may have ended for an error.
    child.stdin.on("error", () => undefined);
    child.stdin.end(sent.map(({ base64 }) => `${base64}\n`).join(""));
    const code = await new Promise((resolve) => child.once("close", resolve));
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toBe(sent.map(({ signature }) => `${signature}\n`).join(""));
    expect(seen.connections).toBe(connections);
  });
});
