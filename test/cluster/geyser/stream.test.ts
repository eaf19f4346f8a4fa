import { createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { GeyserUpdate } from "../../../src/cluster/geyser/codec.ts";
import {
  type GeyserEvents,
  type GeyserOptions,
  openGeyser,
} from "../../../src/cluster/geyser/stream.ts";
import { startFakeGeyser } from "../../support/fake-geyser.ts";

const WAIT = { timeout: 30_000, interval: 10 };
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanups.splice(0).reverse()) await end();
});

function open(url: string, options: Partial<GeyserOptions> = {}) {
  const updates: GeyserUpdate[] = [];
  const closed: string[] = [];
  const counts = { garbage: 0 };
  const events: GeyserEvents = {
    update: (update) => void updates.push(update),
    garbage: () => {
      counts.garbage += 1;
    },
    closed: (reason) => void closed.push(reason),
  };
  const stream = openGeyser({ url, token: null, accounts: ["A"], ...options }, events);
  cleanups.push(() => stream.end());
  return { stream, updates, closed, counts };
}

async function setUp(options: Partial<GeyserOptions> = {}) {
  const server = await startFakeGeyser();
  cleanups.push(() => server.stop());
  const client = open(server.url, options);
  await vi.waitFor(() => expect(server.requests).toHaveLength(1), WAIT);
  return { server, ...client };
}

describe("gRPC stream", () => {
  it("sends one subscribe request, with the token if one is configured", async () => {
    const token = "secret-0123456789";
    const { server } = await setUp({ token });
    expect(server.tokens).toEqual([token]);
    expect(server.requests[0]).toMatchObject({
      slots: { edge: { interslot_updates: true } },
      transactions_status: { edge: { account_include: ["A"], vote: false } },
    });
    expect((await setUp()).server.tokens).toEqual([null]);
  });

  it("delivers the server's updates in order", async () => {
    const { server, updates } = await setUp();
    const signature = Buffer.alloc(64, 1);
    server.say({ slot: { slot: 7, status: 3 } });
    server.say({ transaction_status: { slot: 7, signature, bank_id: 70 } });
    const block_height = { block_height: 5 };
    server.say({ block_meta: { slot: 7, blockhash: "abc", block_height, bank_id: 71 } });
    await vi.waitFor(() => expect(updates).toHaveLength(3), WAIT);
    expect(updates).toEqual([
      { kind: "slot", slot: 7, stage: "firstShred", bank: null },
      { kind: "status", slot: 7, signature, error: null, bank: 70 },
      { kind: "block", slot: 7, blockhash: "abc", height: 5, bank: 71 },
    ]);
  });

  it("answers pings", async () => {
    const { server } = await setUp();
    server.say({ ping: {} });
    await vi.waitFor(() => expect(server.requests).toHaveLength(2), WAIT);
    expect(server.requests[1]).toMatchObject({ ping: { id: 1 } });
  });

  it("counts messages that it cannot decode and continues", async () => {
    const { server, updates, counts, closed } = await setUp();
    server.sayBytes(Buffer.from("no protobuf at all"));
    server.sayBytes(Buffer.alloc(0));
    server.say({ slot: { slot: 8, status: 4 } });
    await vi.waitFor(() => expect(updates).toHaveLength(1), WAIT);
    expect(counts.garbage).toBe(2);
    expect(closed).toEqual([]);
  });

  it("reports a disconnect once, and nothing after end()", async () => {
    const { server, closed } = await setUp();
    server.cut();
    await vi.waitFor(() => expect(closed).toHaveLength(1), WAIT);
    const other = await setUp();
    other.stream.end();
    await vi.waitFor(() => expect(other.server.streams).toBe(0), WAIT);
    expect(other.closed).toEqual([]);
  });

  it("reports a refused connection and a server that does not speak HTTP/2", async () => {
    const { server } = await setUp();
    server.stop();
    const refused = open(server.url);
    await vi.waitFor(() => expect(refused.closed).toHaveLength(1), WAIT);
    const sockets: Socket[] = [];
    const httpServer = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => undefined);
      socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    await new Promise<void>((resolve) => httpServer.listen(0, "127.0.0.1", resolve));
    cleanups.push(() => httpServer.close());
    const address = httpServer.address();
    const port = typeof address === "object" ? address?.port : 0;
    const { closed } = open(`http://127.0.0.1:${port}`);
    await vi.waitFor(() => expect(closed).toHaveLength(1), WAIT);
  });
});
