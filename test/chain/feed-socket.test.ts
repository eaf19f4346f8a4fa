import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { WebSocketServer } from "ws";
import { type FeedEvents, openFeed as openFeedAt } from "../../src/chain/feed-socket.ts";

const WAIT = { timeout: 30_000, interval: 10 };
const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function listen() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  endings.push(() => {
    server.close();
    server.closeAllConnections();
  });
  // A TCP server's address is never a path.
  const { port } = server.address() as AddressInfo;
  return { server, url: `ws://127.0.0.1:${port}` };
}

describe("a node's feed", () => {
  async function openFeed(answer: (method: string) => object) {
    const { server, url } = await listen();
    const sockets = new WebSocketServer({ server });
    const asked: string[] = [];
    sockets.on("connection", (socket) => {
      socket.on("message", (data) => {
        const { id, method } = JSON.parse(String(data)) as { id: number; method: string };
        asked.push(method);
        socket.send(JSON.stringify({ jsonrpc: "2.0", id, ...answer(method) }));
      });
    });
    endings.push(() => {
      for (const socket of sockets.clients) socket.terminate();
    });
    const seen: string[] = [];
    const events: FeedEvents = {
      opened: () => void seen.push("opened"),
      event: (feed, kind, slot) => void seen.push(`${feed} ${kind} ${slot}`),
      closed: () => void seen.push("closed"),
    };
    const feed = openFeedAt(url, 30_000, events);
    endings.push(() => feed.end());
    await vi.waitFor(() => expect(seen).toEqual(["opened"]), WAIT);
    const say = (method: string, result: unknown) => {
      for (const socket of sockets.clients) {
        socket.send(
          JSON.stringify({ jsonrpc: "2.0", method, params: { result, subscription: 1 } }),
        );
      }
    };
    return { feed, seen, asked, sockets, say };
  }

  it("tells refused subscriptions from accepted ones, and asks once", async () => {
    const { feed, asked } = await openFeed((method) =>
      method === "slotSubscribe" ? { result: 1 } : { error: { code: -32601, message: "no" } },
    );
    expect(await feed.subscribe("slotsUpdates")).toBe(false);
    expect(await feed.subscribe("slot")).toBe(true);
    expect(asked).toEqual(["slotsUpdatesSubscribe", "slotSubscribe"]);
  });

  it("maps what a node says to starts and ends", async () => {
    const { seen, say } = await openFeed(() => ({ result: 1 }));
    const types = ["firstShredReceived", "createdBank", "completed", "frozen", "root", "x"];
    for (const [index, type] of types.entries()) {
      say("slotsUpdatesNotification", { type, slot: 7 + index, timestamp: 1 });
    }
    say("slotNotification", { slot: 8, parent: 7, root: 1 });
    await vi.waitFor(() => expect(seen.at(-1)).toBe("slot start 8"), WAIT);
    expect(seen.slice(1)).toEqual([
      "slotsUpdates start 7",
      "slotsUpdates start 8",
      "slotsUpdates end 9",
      "slotsUpdates end 10",
      "slot start 8",
    ]);
  });

  it("tells once what a node says twice in a row of the same feed and kind", async () => {
    const { seen, say } = await openFeed(() => ({ result: 1 }));
    const update = (type: string, slot: number) => say("slotsUpdatesNotification", { type, slot });
    update("firstShredReceived", 7);
    update("createdBank", 7);
    update("completed", 7);
    update("firstShredReceived", 8);
    say("slotNotification", { slot: 7 });
    say("slotNotification", { slot: 7 });
    update("frozen", 7);
    update("createdBank", 8);
    // Another slot is news, whether it is later or earlier.
    update("createdBank", 6);
    update("createdBank", 8);
    say("slotNotification", { slot: 0 });
    say("slotNotification", { slot: 7 });
    await vi.waitFor(() => expect(seen).toHaveLength(9), WAIT);
    expect(seen.slice(1)).toEqual([
      "slotsUpdates start 7",
      "slotsUpdates end 7",
      "slotsUpdates start 8",
      "slot start 7",
      "slotsUpdates start 6",
      "slotsUpdates start 8",
      "slot start 0",
      "slot start 7",
    ]);
  });

  it("tells once that the connection ended, and does not come back by itself", async () => {
    const { seen, sockets } = await openFeed(() => ({ result: 1 }));
    for (const socket of sockets.clients) socket.terminate();
    await vi.waitFor(() => expect(seen).toEqual(["opened", "closed"]), WAIT);
    await vi.waitFor(() => expect(sockets.clients.size).toBe(0), WAIT);
  });

  it("says nothing after its end", async () => {
    const { feed, seen, sockets } = await openFeed(() => ({ result: 1 }));
    feed.end();
    await vi.waitFor(() => expect(sockets.clients.size).toBe(0), WAIT);
    expect(seen).toEqual(["opened"]);
  });

  it("tells of a connection that could not be opened", async () => {
    const { server, url } = await listen();
    server.close();
    server.closeAllConnections();
    await once(server, "close");
    const seen: string[] = [];
    const events = { opened: () => seen.push("opened"), closed: () => seen.push("closed") };
    openFeedAt(url, 30_000, { ...events, event: () => undefined });
    await vi.waitFor(() => expect(seen).toEqual(["closed"]), WAIT);
  });

  it("passes over what makes no sense, and gives no slot that is none", async () => {
    const { feed, seen, sockets, say } = await openFeed(() => ({ result: 1 }));
    for (const socket of sockets.clients) {
      for (const text of ["{", "[]", "null", "7", '{"id":99,"result":1}', '{"id":null}']) {
        socket.send(text);
      }
      socket.send(Buffer.from('{"method":"slotNotification","params":{"result":{"slot":1}}}'));
    }
    say("slotNotification", null);
    const strange = [null, "7", -1, 1.5, 2 ** 53, [7], undefined];
    for (const slot of strange) say("slotNotification", { slot });
    say("rootNotification", { slot: 1 });
    expect(await feed.subscribe("slot")).toBe(true);
    expect(seen.slice(1)).toEqual(new Array(1 + strange.length).fill("slot start NaN"));
  });

  it("refuses what was asked of a connection that ends", async () => {
    const { feed, sockets } = await openFeed(() => ({ method: "other" }));
    const asked = feed.subscribe("slot");
    for (const socket of sockets.clients) socket.terminate();
    expect(await asked).toBe(false);
  });
});
