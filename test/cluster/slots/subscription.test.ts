import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { WEBSOCKET_MESSAGE_BYTES_MAX } from "../../../src/cluster/limits.ts";
import {
  openSlotSubscriber,
  type SlotSubscriberEvents,
} from "../../../src/cluster/slots/subscription.ts";

const WAIT = { timeout: 30_000, interval: 10 };
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanups.splice(0).reverse()) await end();
});

async function listening(server: ReturnType<typeof createTcpServer>) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // A TCP server's address is always an AddressInfo.
  const { port } = server.address() as AddressInfo;
  return `ws://127.0.0.1:${port}`;
}

/** Starts a node with an HTTP server. */
async function listen() {
  const server = createServer();
  const url = await listening(server);
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, url };
}

/** Starts a node with a custom TCP connection handler; `sockets` holds its open connections. */
async function listenRaw(onConnection: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    onConnection(socket);
    socket.resume();
  });
  const url = await listening(server);
  cleanups.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { url, sockets };
}

/** The WebSocket handshake response to this request. */
function handshakeResponse(request: string): string {
  const key = /sec-websocket-key: (\S+)/i.exec(request)?.[1] ?? "";
  const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = createHash("sha1")
    .update(key + guid)
    .digest("base64");
  const head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade";
  return `${head}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
}

/** A server frame with a payload below 126 bytes. */
const frame = (first: number, text: string): Buffer =>
  Buffer.concat([Buffer.of(first, Buffer.byteLength(text)), Buffer.from(text)]);
const TEXT = 0x81;
const slotNotification = (slot: number): string =>
  JSON.stringify({ method: "slotNotification", params: { result: { slot } } });

describe("slot subscription", () => {
  function subscribeTo(url: string, timeoutMs = 30_000) {
    const events: string[] = [];
    const handlers: SlotSubscriberEvents = {
      opened: () => void events.push("opened"),
      event: (subscriber, kind, slot) => void events.push(`${subscriber} ${kind} ${slot}`),
      closed: () => void events.push("closed"),
    };
    const subscriber = openSlotSubscriber(url, timeoutMs, handlers);
    cleanups.push(() => subscriber.end());
    return { subscriber, events };
  }

  async function openAt(respond: (method: string) => object, path = "") {
    const { server, url } = await listen();
    const sockets = new WebSocketServer({ server });
    const methods: string[] = [];
    const requests: IncomingMessage[] = [];
    sockets.on("connection", (socket, request) => {
      requests.push(request);
      socket.on("message", (data) => {
        const { id, method } = JSON.parse(String(data)) as { id: number; method: string };
        methods.push(method);
        socket.send(JSON.stringify({ jsonrpc: "2.0", id, ...respond(method) }));
      });
    });
    cleanups.push(() => {
      for (const socket of sockets.clients) socket.terminate();
    });
    const { subscriber, events } = subscribeTo(url.replace("ws://", `ws://${path}`));
    await vi.waitFor(() => expect(events).toEqual(["opened"]), WAIT);
    const [peer] = sockets.clients as Iterable<WebSocket>;
    if (peer === undefined) throw new Error("no client is connected");
    const push = (method: string, result: unknown) => {
      peer.send(JSON.stringify({ jsonrpc: "2.0", method, params: { result, subscription: 1 } }));
    };
    return { subscriber, events, methods, requests, sockets, peer, push };
  }

  it("reports whether the node accepted a subscription, with one request each", async () => {
    const { subscriber, methods } = await openAt((method) =>
      method === "slotSubscribe" ? { result: 1 } : { error: { code: -32601, message: "no" } },
    );
    expect(await subscriber.subscribe("slotsUpdates")).toBe(false);
    expect(await subscriber.subscribe("slot")).toBe(true);
    expect(methods).toEqual(["slotsUpdatesSubscribe", "slotSubscribe"]);
  });

  it("sends no second request for a subscription while one is pending", async () => {
    const { subscriber, methods } = await openAt(() => ({ result: null }));
    const [first, second] = [subscriber.subscribe("slot"), subscriber.subscribe("slot")];
    expect([await first, await second]).toEqual([true, false]);
    expect(await subscriber.subscribe("slot")).toBe(true);
    expect(methods).toHaveLength(2);
    subscriber.end();
    expect(await subscriber.subscribe("slot")).toBe(false);
  });

  it("maps notifications to slot starts and ends", async () => {
    const { events, push } = await openAt(() => ({ result: 1 }));
    const types = ["firstShredReceived", "createdBank", "completed", "frozen", "root", "x"];
    for (const [index, type] of types.entries()) {
      push("slotsUpdatesNotification", { type, slot: 7 + index, timestamp: 1 });
    }
    push("slotNotification", { slot: 8, parent: 7, root: 1 });
    await vi.waitFor(() => expect(events.at(-1)).toBe("slot start 8"), WAIT);
    expect(events.slice(1)).toEqual([
      "slotsUpdates start 7",
      "slotsUpdates start 8",
      "slotsUpdates end 9",
      "slotsUpdates end 10",
      "slot start 8",
    ]);
  });

  it("drops consecutive duplicates of the same subscription and kind", async () => {
    const { events, push } = await openAt(() => ({ result: 1 }));
    const update = (type: string, slot: number) => push("slotsUpdatesNotification", { type, slot });
    update("firstShredReceived", 7);
    update("createdBank", 7);
    update("completed", 7);
    update("firstShredReceived", 8);
    push("slotNotification", { slot: 7 });
    push("slotNotification", { slot: 7 });
    update("frozen", 7);
    update("createdBank", 8);
    // A different slot is an event, whether it is later or earlier.
    update("createdBank", 6);
    update("createdBank", 8);
    push("slotNotification", { slot: 0 });
    push("slotNotification", { slot: 7 });
    // A notification without a slot is not a different slot.
    push("slotNotification", {});
    push("slotNotification", { slot: 7 });
    push("slotNotification", { slot: 8 });
    await vi.waitFor(() => expect(events.at(-1)).toBe("slot start 8"), WAIT);
    expect(events.slice(1)).toEqual([
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

  it("ignores invalid messages, and delivers invalid slots as NaN", async () => {
    const { subscriber, events, peer, push } = await openAt(() => ({ result: 1 }));
    for (const text of ["{", "[]", "null", "7", '{"id":99,"result":1}', '{"id":null}', ""]) {
      peer.send(text);
    }
    peer.send(Buffer.from(slotNotification(1)));
    push("slotNotification", null);
    const invalidSlots = [null, "7", -1, 1.5, 2 ** 53, [7], undefined];
    for (const slot of invalidSlots) push("slotNotification", { slot });
    push("rootNotification", { slot: 1 });
    push("slotsUpdatesNotification", { type: "constructor", slot: 1 });
    expect(await subscriber.subscribe("slot")).toBe(true);
    expect(events.slice(1)).toEqual(new Array(1 + invalidSlots.length).fill("slot start NaN"));
  });

  it("reassembles fragmented messages and answers pings", async () => {
    const { events, peer } = await openAt(() => ({ result: 1 }));
    const pong = once(peer, "pong");
    for (const letter of slotNotification(7)) peer.send(letter, { fin: false });
    peer.ping("payload");
    peer.send("", { fin: true });
    expect(String((await pong)[0])).toBe("payload");
    await vi.waitFor(() => expect(events).toEqual(["opened", "slot start 7"]), WAIT);
  });

  it("sends a user agent, and the URL's credentials only in the Authorization header", async () => {
    const { requests } = await openAt(() => ({ result: 1 }), "us%40er:p%25ss%@");
    const [{ headers, url } = { headers: {}, url: "" }] = requests;
    expect(headers["user-agent"]).toBe("touchdown");
    const basic = `Basic ${Buffer.from("us@er:p%ss%").toString("base64")}`;
    expect({ auth: headers.authorization, url }).toEqual({ auth: basic, url: "/" });
    expect(headers["sec-websocket-extensions"]).toBeUndefined();
  });

  it("closes on a message above the size limit", async () => {
    const { subscriber, events, peer } = await openAt(() => ({ result: 1 }));
    const notification = slotNotification(7);
    peer.send(notification.padEnd(WEBSOCKET_MESSAGE_BYTES_MAX));
    expect(await subscriber.subscribe("slot")).toBe(true);
    const pending = subscriber.subscribe("slotsUpdates");
    peer.send(slotNotification(8).padEnd(WEBSOCKET_MESSAGE_BYTES_MAX + 1));
    await vi.waitFor(() => expect(events).toEqual(["opened", "slot start 7", "closed"]), WAIT);
    await pending;
  });

  it.each([
    ["drops the connection", (peer: WebSocket) => peer.terminate()],
    ["sends a close frame", (peer: WebSocket) => peer.close(1001, "bye")],
    ["sends invalid UTF-8", (peer: WebSocket) => peer.send(Buffer.of(0xff), { binary: false })],
  ])("reports its end once if the node %s, and does not reconnect", async (_, act) => {
    const { events, sockets, peer, subscriber } = await openAt(() => ({ method: "other" }));
    const pending = subscriber.subscribe("slot");
    act(peer);
    await vi.waitFor(() => expect(events).toEqual(["opened", "closed"]), WAIT);
    expect(await pending).toBe(false);
    await vi.waitFor(() => expect(sockets.clients.size).toBe(0), WAIT);
    expect(events).toHaveLength(2);
  });

  it("answers a close frame with the same code", async () => {
    const { peer, events } = await openAt(() => ({ result: 1 }));
    const closed = once(peer, "close");
    peer.close(1001, "bye");
    expect((await closed)[0]).toBe(1001);
    await vi.waitFor(() => expect(events).toEqual(["opened", "closed"]), WAIT);
  });

  it("reports nothing after end()", async () => {
    const { subscriber, events, sockets } = await openAt(() => ({ method: "other" }));
    const pending = subscriber.subscribe("slot");
    subscriber.end();
    expect(await pending).toBe(false);
    await vi.waitFor(() => expect(sockets.clients.size).toBe(0), WAIT);
    expect(events).toEqual(["opened"]);
    subscriber.end();
  });

  it.each([200, 301, 401, 403, 500])("closes on status %i, without redirecting", async (status) => {
    let redirects = 0;
    const { url: redirectUrl } = await listenRaw(() => {
      redirects += 1;
    });
    const { url } = await listenRaw((socket) => {
      const head = `HTTP/1.1 ${status} No\r\nlocation: ${redirectUrl}\r\ncontent-length: 0`;
      socket.once("data", () => socket.end(`${head}\r\n\r\n`));
    });
    const { events } = subscribeTo(url);
    await vi.waitFor(() => expect(events).toEqual(["closed"]), WAIT);
    expect(redirects).toBe(0);
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
  ])("is %s if the handshake response replaces %j with %j", async (outcome, from, to) => {
    const { url } = await listenRaw((socket) => {
      socket.once("data", (request) => {
        const response = handshakeResponse(String(request)).replace(from, to);
        socket.end(response.replace("LONG", "y".repeat(20_000)));
      });
    });
    const { events } = subscribeTo(url);
    await vi.waitFor(() => expect(events.at(-1)).toBe("closed"), WAIT);
    expect(events[0]).toBe(outcome);
  });

  it("reports a failed connection only after the open call has returned", async () => {
    const { server, url } = await listen();
    server.close();
    server.closeAllConnections();
    await once(server, "close");
    const { events } = subscribeTo(url);
    expect(events).toEqual([]);
    await vi.waitFor(() => expect(events).toEqual(["closed"]), WAIT);
  });

  it.each(["", "HTTP/1.1 101 Switching", "no"])(
    "times out if the node stops the handshake after %j",
    async (partial) => {
      const { url, sockets } = await listenRaw((socket) => socket.write(partial));
      const { events } = subscribeTo(url, 250);
      await vi.waitFor(() => expect(events).toEqual(["closed"]), WAIT);
      await vi.waitFor(() => expect(sockets.size).toBe(0), WAIT);
    },
  );

  it("reports its end once wherever the node truncates the stream", async () => {
    const event = frame(TEXT, slotNotification(7));
    const head = handshakeResponse("").length;
    for (const sent of [0, 1, 60, head - 1, head, head + 1, head + 11, head + event.length]) {
      const { url } = await listenRaw((socket) => {
        socket.once("data", (request) => {
          const response = Buffer.concat([Buffer.from(handshakeResponse(String(request))), event]);
          socket.end(response.subarray(0, sent));
        });
      });
      const { events } = subscribeTo(url);
      await vi.waitFor(() => expect(events.at(-1)).toBe("closed"), WAIT);
      const all = ["opened", "slot start 7"];
      const length = sent < head ? 0 : sent < head + event.length ? 1 : 2;
      expect({ sent, events }).toEqual({ sent, events: [...all.slice(0, length), "closed"] });
    }
  });

  it("can be ended while connecting, during the handshake and inside a frame", async () => {
    const responses = ["", "HTTP/1.1 101 Sw", null];
    for (const partial of responses) {
      const { url, sockets } = await listenRaw((socket) => {
        socket.once("data", (request) => {
          socket.write(partial ?? handshakeResponse(String(request)));
          if (partial === null) socket.write(frame(TEXT, slotNotification(7)).subarray(0, 9));
        });
      });
      const early = subscribeTo(url);
      early.subscriber.end();
      const { subscriber, events } = subscribeTo(url);
      await vi.waitFor(() => expect(sockets.size).toBeGreaterThan(0), WAIT);
      if (partial === null) await vi.waitFor(() => expect(events).toEqual(["opened"]), WAIT);
      const before = [...events];
      subscriber.end();
      await vi.waitFor(() => expect(sockets.size).toBe(0), WAIT);
      expect([events, early.events]).toEqual([before, []]);
    }
  });
});
