import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { createClusterCounters } from "../../../src/cluster/counters.ts";
import { WEBSOCKET_MESSAGE_BYTES_MAX } from "../../../src/cluster/limits.ts";
import { openNativeSlotSubscriber } from "../../../src/cluster/slots/native-subscription.ts";
import {
  openSlotSubscriber,
  type SlotSubscriberEvents,
} from "../../../src/cluster/slots/subscription.ts";
import { native } from "../../native/addon.ts";

const WAIT = { timeout: 30_000, interval: 10 };
const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

/** Both engines' subscriptions; the native one where it is built. */
function ways(): [string, typeof openSlotSubscriber][] {
  const portable: [string, typeof openSlotSubscriber] = ["portable", openSlotSubscriber];
  if (native === null) return [portable];
  const deps = { native, counters: createClusterCounters() };
  return [portable, ["native", (...given) => openNativeSlotSubscriber(deps, ...given)]];
}

async function listening(server: ReturnType<typeof createTcpServer>) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // A TCP server's address is never a path.
  const { port } = server.address() as AddressInfo;
  return `ws://127.0.0.1:${port}`;
}

/** A node that speaks HTTP. */
async function listen() {
  const server = createServer();
  const url = await listening(server);
  endings.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, url };
}

/** A node with a custom handler for connections, and its number of connections. */
async function listenRaw(onConnection: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    onConnection(socket);
    socket.resume();
  });
  const url = await listening(server);
  endings.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { url, sockets };
}

/** A node's response that accepts a connection. */
function accepting(request: string): string {
  const key = /sec-websocket-key: (\S+)/i.exec(request)?.[1] ?? "";
  const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = createHash("sha1")
    .update(key + guid)
    .digest("base64");
  const head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade";
  return `${head}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
}

/** A frame of a server, below 126 bytes. */
const frame = (first: number, text: string): Buffer =>
  Buffer.concat([Buffer.of(first, Buffer.byteLength(text)), Buffer.from(text)]);
const TEXT = 0x81;
const slotIs = (slot: number): string =>
  JSON.stringify({ method: "slotNotification", params: { result: { slot } } });

describe.each(ways())("a node's feed over the %s engine", (_, open) => {
  function listenTo(url: string, timeoutMs = 30_000) {
    const seen: string[] = [];
    const events: SlotSubscriberEvents = {
      opened: () => void seen.push("opened"),
      event: (subscriber, kind, slot) => void seen.push(`${subscriber} ${kind} ${slot}`),
      closed: () => void seen.push("closed"),
    };
    const subscriber = open(url, timeoutMs, events);
    endings.push(() => subscriber.end());
    return { subscriber, seen };
  }

  async function openAt(answer: (method: string) => object, path = "") {
    const { server, url } = await listen();
    const sockets = new WebSocketServer({ server });
    const asked: string[] = [];
    const requests: IncomingMessage[] = [];
    sockets.on("connection", (socket, request) => {
      requests.push(request);
      socket.on("message", (data) => {
        const { id, method } = JSON.parse(String(data)) as { id: number; method: string };
        asked.push(method);
        socket.send(JSON.stringify({ jsonrpc: "2.0", id, ...answer(method) }));
      });
    });
    endings.push(() => {
      for (const socket of sockets.clients) socket.terminate();
    });
    const { subscriber, seen } = listenTo(url.replace("ws://", `ws://${path}`));
    await vi.waitFor(() => expect(seen).toEqual(["opened"]), WAIT);
    const [peer] = sockets.clients as Iterable<WebSocket>;
    if (peer === undefined) throw new Error("nobody is connected");
    const say = (method: string, result: unknown) => {
      peer.send(JSON.stringify({ jsonrpc: "2.0", method, params: { result, subscription: 1 } }));
    };
    return { subscriber, seen, asked, requests, sockets, peer, say };
  }

  it("tells refused subscriptions from accepted ones, and asks once", async () => {
    const { subscriber, asked } = await openAt((method) =>
      method === "slotSubscribe" ? { result: 1 } : { error: { code: -32601, message: "no" } },
    );
    expect(await subscriber.subscribe("slotsUpdates")).toBe(false);
    expect(await subscriber.subscribe("slot")).toBe(true);
    expect(asked).toEqual(["slotsUpdatesSubscribe", "slotSubscribe"]);
  });

  it("asks for one feed at a time once, and again after the answer", async () => {
    const { subscriber, asked } = await openAt(() => ({ result: null }));
    const [first, second] = [subscriber.subscribe("slot"), subscriber.subscribe("slot")];
    expect([await first, await second]).toEqual([true, false]);
    expect(await subscriber.subscribe("slot")).toBe(true);
    expect(asked).toHaveLength(2);
    subscriber.end();
    expect(await subscriber.subscribe("slot")).toBe(false);
  });

  it("maps what a node says to starts and ends", async () => {
    const { seen, say } = await openAt(() => ({ result: 1 }));
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
    const { seen, say } = await openAt(() => ({ result: 1 }));
    const update = (type: string, slot: number) => say("slotsUpdatesNotification", { type, slot });
    update("firstShredReceived", 7);
    update("createdBank", 7);
    update("completed", 7);
    update("firstShredReceived", 8);
    say("slotNotification", { slot: 7 });
    say("slotNotification", { slot: 7 });
    update("frozen", 7);
    update("createdBank", 8);
    // A different slot is an event, whether it is later or earlier.
    update("createdBank", 6);
    update("createdBank", 8);
    say("slotNotification", { slot: 0 });
    say("slotNotification", { slot: 7 });
    // A notification without a slot is not a different slot.
    say("slotNotification", {});
    say("slotNotification", { slot: 7 });
    say("slotNotification", { slot: 8 });
    await vi.waitFor(() => expect(seen.at(-1)).toBe("slot start 8"), WAIT);
    expect(seen.slice(1)).toEqual([
      "slotsUpdates start 7",
      "slotsUpdates end 7",
      "slotsUpdates start 8",
      "slot start 7",
      "slotsUpdates start 6",
      "slotsUpdates start 8",
      "slot start 0",
      "slot start 7",
      "slot start NaN",
      "slot start 8",
    ]);
  });

  it("passes over what makes no sense, and gives no slot that is none", async () => {
    const { subscriber, seen, peer, say } = await openAt(() => ({ result: 1 }));
    for (const text of ["{", "[]", "null", "7", '{"id":99,"result":1}', '{"id":null}', ""]) {
      peer.send(text);
    }
    peer.send(Buffer.from(slotIs(1)));
    say("slotNotification", null);
    const strange = [null, "7", -1, 1.5, 2 ** 53, [7], undefined];
    for (const slot of strange) say("slotNotification", { slot });
    say("rootNotification", { slot: 1 });
    say("slotsUpdatesNotification", { type: "constructor", slot: 1 });
    expect(await subscriber.subscribe("slot")).toBe(true);
    expect(seen.slice(1)).toEqual(new Array(1 + strange.length).fill("slot start NaN"));
  });

  it("reads messages in pieces and answers pings", async () => {
    const { seen, peer } = await openAt(() => ({ result: 1 }));
    const heard = once(peer, "pong");
    for (const letter of slotIs(7)) peer.send(letter, { fin: false });
    peer.ping("are you there");
    peer.send("", { fin: true });
    expect(String((await heard)[0])).toBe("are you there");
    await vi.waitFor(() => expect(seen).toEqual(["opened", "slot start 7"]), WAIT);
  });

  it("says who it is, and sends name and password apart from the address", async () => {
    const { requests } = await openAt(() => ({ result: 1 }), "us%40er:p%25ss%@");
    const [{ headers, url } = { headers: {}, url: "" }] = requests;
    expect(headers["user-agent"]).toBe("touchdown");
    const basic = `Basic ${Buffer.from("us@er:p%ss%").toString("base64")}`;
    expect({ auth: headers.authorization, url }).toEqual({ auth: basic, url: "/" });
    expect(headers["sec-websocket-extensions"]).toBeUndefined();
  });

  it("ends where a message is larger than any that is read", async () => {
    const { subscriber, seen, peer } = await openAt(() => ({ result: 1 }));
    const whole = slotIs(7);
    peer.send(whole.padEnd(WEBSOCKET_MESSAGE_BYTES_MAX));
    expect(await subscriber.subscribe("slot")).toBe(true);
    const asked = subscriber.subscribe("slotsUpdates");
    peer.send(slotIs(8).padEnd(WEBSOCKET_MESSAGE_BYTES_MAX + 1));
    await vi.waitFor(() => expect(seen).toEqual(["opened", "slot start 7", "closed"]), WAIT);
    await asked;
  });

  it.each([
    ["goes away", (peer: WebSocket) => peer.terminate()],
    ["says goodbye", (peer: WebSocket) => peer.close(1001, "bye")],
    ["sends what is no text", (peer: WebSocket) => peer.send(Buffer.of(0xff), { binary: false })],
  ])("tells once that it ended where the node %s, and stays away", async (_, act) => {
    const { seen, sockets, peer, subscriber } = await openAt(() => ({ method: "other" }));
    const asked = subscriber.subscribe("slot");
    act(peer);
    await vi.waitFor(() => expect(seen).toEqual(["opened", "closed"]), WAIT);
    expect(await asked).toBe(false);
    await vi.waitFor(() => expect(sockets.clients.size).toBe(0), WAIT);
    expect(seen).toHaveLength(2);
  });

  it("answers a goodbye with one", async () => {
    const { peer, seen } = await openAt(() => ({ result: 1 }));
    const left = once(peer, "close");
    peer.close(1001, "bye");
    expect((await left)[0]).toBe(1001);
    await vi.waitFor(() => expect(seen).toEqual(["opened", "closed"]), WAIT);
  });

  it("says nothing after its end", async () => {
    const { subscriber, seen, sockets } = await openAt(() => ({ method: "other" }));
    const asked = subscriber.subscribe("slot");
    subscriber.end();
    expect(await asked).toBe(false);
    await vi.waitFor(() => expect(sockets.clients.size).toBe(0), WAIT);
    expect(seen).toEqual(["opened"]);
    subscriber.end();
  });

  it.each([200, 301, 401, 403, 500])("tells of a handshake refused with %i", async (status) => {
    let led = 0;
    const { url: elsewhere } = await listenRaw(() => {
      led += 1;
    });
    const { url } = await listenRaw((socket) => {
      const head = `HTTP/1.1 ${status} No\r\nlocation: ${elsewhere}\r\ncontent-length: 0`;
      socket.once("data", () => socket.end(`${head}\r\n\r\n`));
    });
    const { seen } = listenTo(url);
    await vi.waitFor(() => expect(seen).toEqual(["closed"]), WAIT);
    expect(led).toBe(0);
  });

  it.each([
    ["opened", "Connection: Upgrade", "connection: keep-alive, upgrade"],
    ["opened", "Connection: Upgrade", "Connection: Upgrade\r\nConnection: keep-alive"],
    ["opened", "Upgrade: websocket", "upgrade: WebSocket"],
    ["closed", "Upgrade: websocket", "Upgrade: h2c"],
    ["closed", "Connection: Upgrade", "Connection: keep-alive"],
    ["closed", "-Accept: ", "-Accept: x"],
    ["closed", "-Accept", "-Other"],
    ["closed", "\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"],
    ["closed", "\r\n\r\n", "\r\nSec-WebSocket-Protocol: x\r\n\r\n"],
    ["closed", "\r\n\r\n", "\r\nx: LONG\r\n\r\n"],
  ])("is %s where the answer says not %j but %j", async (outcome, usual, words) => {
    const { url } = await listenRaw((socket) => {
      socket.once("data", (request) => {
        const answer = accepting(String(request)).replace(usual, words);
        socket.end(answer.replace("LONG", "y".repeat(20_000)));
      });
    });
    const { seen } = listenTo(url);
    await vi.waitFor(() => expect(seen.at(-1)).toBe("closed"), WAIT);
    expect(seen[0]).toBe(outcome);
  });

  it("tells of a connection that could not be opened, after it was returned", async () => {
    const { server, url } = await listen();
    server.close();
    server.closeAllConnections();
    await once(server, "close");
    const { seen } = listenTo(url);
    expect(seen).toEqual([]);
    await vi.waitFor(() => expect(seen).toEqual(["closed"]), WAIT);
  });

  it.each(["", "HTTP/1.1 101 Switching", "no"])(
    "gives up a node that leaves the handshake at %j",
    async (words) => {
      const { url, sockets } = await listenRaw((socket) => socket.write(words));
      const { seen } = listenTo(url, 250);
      await vi.waitFor(() => expect(seen).toEqual(["closed"]), WAIT);
      await vi.waitFor(() => expect(sockets.size).toBe(0), WAIT);
    },
  );

  it("ends at any moment of what a node says, once", async () => {
    const event = frame(TEXT, slotIs(7));
    const head = accepting("").length;
    for (const cut of [0, 1, 60, head - 1, head, head + 1, head + 11, head + event.length]) {
      const { url } = await listenRaw((socket) => {
        socket.once("data", (request) => {
          const said = Buffer.concat([Buffer.from(accepting(String(request))), event]);
          socket.end(said.subarray(0, cut));
        });
      });
      const { seen } = listenTo(url);
      await vi.waitFor(() => expect(seen.at(-1)).toBe("closed"), WAIT);
      const all = ["opened", "slot start 7"];
      const length = cut < head ? 0 : cut < head + event.length ? 1 : 2;
      expect({ cut, seen }).toEqual({ cut, seen: [...all.slice(0, length), "closed"] });
    }
  });

  it("is ended in the midst of connecting, of the handshake and of a frame", async () => {
    const said = ["", "HTTP/1.1 101 Sw", null];
    for (const words of said) {
      const { url, sockets } = await listenRaw((socket) => {
        socket.once("data", (request) => {
          socket.write(words ?? accepting(String(request)));
          if (words === null) socket.write(frame(TEXT, slotIs(7)).subarray(0, 9));
        });
      });
      const early = listenTo(url);
      early.subscriber.end();
      const { subscriber, seen } = listenTo(url);
      await vi.waitFor(() => expect(sockets.size).toBeGreaterThan(0), WAIT);
      if (words === null) await vi.waitFor(() => expect(seen).toEqual(["opened"]), WAIT);
      const before = [...seen];
      subscriber.end();
      await vi.waitFor(() => expect(sockets.size).toBe(0), WAIT);
      expect([seen, early.seen]).toEqual([before, []]);
    }
  });
});
