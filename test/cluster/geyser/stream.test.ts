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
const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

function open(url: string, options: Partial<GeyserOptions> = {}) {
  const updates: GeyserUpdate[] = [];
  const closed: string[] = [];
  const seen = { garbage: 0 };
  const events: GeyserEvents = {
    update: (update) => void updates.push(update),
    garbage: () => {
      seen.garbage += 1;
    },
    closed: (reason) => void closed.push(reason),
  };
  const stream = openGeyser({ url, token: null, accounts: ["A"], ...options }, events);
  endings.push(() => stream.end());
  return { stream, updates, closed, seen };
}

async function setUp(options: Partial<GeyserOptions> = {}) {
  const server = await startFakeGeyser();
  endings.push(() => server.stop());
  const client = open(server.url, options);
  await vi.waitFor(() => expect(server.requests).toHaveLength(1), WAIT);
  return { server, ...client };
}

describe("a stream from a gRPC server", () => {
  it("is asked for once, with the token where there is one", async () => {
    const token = "secret-0123456789";
    const { server } = await setUp({ token });
    expect(server.tokens).toEqual([token]);
    expect(server.requests[0]).toMatchObject({
      slots: { edge: { interslot_updates: true } },
      transactions_status: { edge: { account_include: ["A"], vote: false } },
    });
    expect((await setUp()).server.tokens).toEqual([null]);
  });

  it("tells what the server says, in its order", async () => {
    const { server, updates } = await setUp();
    const signature = Buffer.alloc(64, 1);
    server.say({ slot: { slot: 7, status: 3 } });
    server.say({ transaction_status: { slot: 7, signature } });
    server.say({ block_meta: { slot: 7, blockhash: "abc", block_height: { block_height: 5 } } });
    await vi.waitFor(() => expect(updates).toHaveLength(3), WAIT);
    expect(updates).toEqual([
      { kind: "slot", slot: 7, stage: "firstShred" },
      { kind: "status", slot: 7, signature, error: null },
      { kind: "block", slot: 7, blockhash: "abc", height: 5 },
    ]);
  });

  it("answers pings", async () => {
    const { server } = await setUp();
    server.say({ ping: {} });
    await vi.waitFor(() => expect(server.requests).toHaveLength(2), WAIT);
    expect(server.requests[1]).toMatchObject({ ping: { id: 1 } });
  });

  it("goes on after garbage", async () => {
    const { server, updates, seen, closed } = await setUp();
    server.sayBytes(Buffer.from("no protobuf at all"));
    server.sayBytes(Buffer.alloc(0));
    server.say({ slot: { slot: 8, status: 4 } });
    await vi.waitFor(() => expect(updates).toHaveLength(1), WAIT);
    expect(seen.garbage).toBe(2);
    expect(closed).toEqual([]);
  });

  it("tells once that it was cut, and nothing after its own end", async () => {
    const { server, closed } = await setUp();
    server.cut();
    await vi.waitFor(() => expect(closed).toHaveLength(1), WAIT);
    const other = await setUp();
    other.stream.end();
    await vi.waitFor(() => expect(other.server.streams).toBe(0), WAIT);
    expect(other.closed).toEqual([]);
  });

  it("tells that nobody is there, and that who is there speaks something else", async () => {
    const { server } = await setUp();
    server.stop();
    const away = open(server.url);
    await vi.waitFor(() => expect(away.closed).toHaveLength(1), WAIT);
    const sockets: Socket[] = [];
    const stranger = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => undefined);
      socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
    endings.push(() => stranger.close());
    const address = stranger.address();
    const port = typeof address === "object" ? address?.port : 0;
    const { closed } = open(`http://127.0.0.1:${port}`);
    await vi.waitFor(() => expect(closed).toHaveLength(1), WAIT);
  });
});
