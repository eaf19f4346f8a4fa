import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { createClusterCounters } from "../../../src/cluster/counters.ts";
import { openNativeSlotSubscriber } from "../../../src/cluster/slots/native-subscription.ts";
import { type NativeSlotSubscribing, SLOT_SUBSCRIBER_FULL } from "../../../src/native/contract.ts";
import { native } from "../../native/addon.ts";

const WAIT = { timeout: 30_000, interval: 10 };
const endings: (() => unknown)[] = [];
afterEach(() => {
  for (const end of endings.splice(0).reverse()) end();
});

async function startNode() {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  endings.push(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  // A TCP server's address is never a path.
  const { port } = server.address() as AddressInfo;
  return { server, url: `ws://127.0.0.1:${port}` };
}

/** The engine, with event reads returning nothing while `isOpen` is false. */
function gated() {
  if (native === null) throw new Error("the native engine is not built");
  const engine = native;
  const gate = { isOpen: true, wake: (): void => undefined };
  const feeding: NativeSlotSubscribing = {
    ...engine,
    slotSubscriberOpen(url, authorization, timeoutMs, wake) {
      gate.wake = wake;
      return engine.slotSubscriberOpen(url, authorization, timeoutMs, wake);
    },
    slotSubscriberNext: (subscriber, out) =>
      gate.isOpen ? engine.slotSubscriberNext(subscriber, out) : 0,
  };
  return { gate, feeding };
}

function listenTo(feeding: NativeSlotSubscribing, url: string) {
  const counters = createClusterCounters();
  const seen: string[] = [];
  const subscriber = openNativeSlotSubscriber({ native: feeding, counters }, url, 30_000, {
    opened: () => seen.push("opened"),
    event: (name, kind, slot) => seen.push(`${name} ${kind} ${slot}`),
    closed: () => seen.push("closed"),
  });
  endings.push(() => subscriber.end());
  return { subscriber, seen, counters };
}

/** The number of subscription threads of this process. */
function feedThreads(): number {
  const names = readdirSync("/proc/self/task").map((task) => {
    try {
      return readFileSync(`/proc/self/task/${task}/comm`, "utf8").trim();
    } catch {
      // The thread ended meanwhile.
      return "";
    }
  });
  return names.filter((name) => name === "touchdown-feed").length;
}

const aTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const slotIs = (slot: number): string =>
  JSON.stringify({ method: "slotNotification", params: { result: { slot } } });

describe.skipIf(native === null)("a node's feed on a thread of the native engine", () => {
  it("drops and counts events that are not taken, and tells of all else", async () => {
    const { server, url } = await startNode();
    const { gate, feeding } = gated();
    const connected = once(server, "connection") as Promise<[WebSocket]>;
    const { subscriber, seen, counters } = listenTo(feeding, url);
    const [peer] = await connected;
    peer.on("message", () => peer.send('{"id":2,"result":1}'));
    await vi.waitFor(() => expect(seen).toEqual(["opened"]), WAIT);
    gate.isOpen = false;
    for (let slot = 1; slot <= 300; slot += 1) peer.send(slotIs(slot));
    peer.ping();
    await once(peer, "pong");
    const asked = subscriber.subscribe("slot");
    await once(peer, "message");
    peer.close();
    await once(peer, "close");
    expect(seen).toEqual(["opened"]);
    gate.isOpen = true;
    gate.wake();
    expect(await asked).toBe(true);
    expect(seen[256]).toBe("slot start 256");
    expect(counters.slotEventsLost).toBe(44);
    await vi.waitFor(() => expect(seen.at(-1)).toBe("closed"), WAIT);
    expect(counters.slotEventsLost).toBe(44);
  });

  it("takes each feed's thread with it, at whatever it is", async () => {
    const { server, url } = await startNode();
    const { feeding } = gated();
    // The threads of earlier tests.
    await vi.waitFor(() => expect(feedThreads()).toBe(0), WAIT);
    const all = Array.from({ length: 8 }, () => listenTo(feeding, url));
    await vi.waitFor(() => expect(server.clients.size).toBe(8), WAIT);
    expect(feedThreads()).toBe(8);
    for (const { subscriber } of all.slice(0, 4)) subscriber.end();
    await vi.waitFor(() => expect(feedThreads()).toBe(4), WAIT);
    for (const socket of server.clients) socket.terminate();
    await vi.waitFor(() => expect(feedThreads()).toBe(0), WAIT);
    await vi.waitFor(
      () => expect(all.map(({ seen }) => seen.includes("closed")).indexOf(true)).toBe(4),
      WAIT,
    );
  });

  it("ends while the node sends more than can be read", async () => {
    const { server, url } = await startNode();
    const { feeding } = gated();
    const connected = once(server, "connection") as Promise<[WebSocket]>;
    const { subscriber, seen } = listenTo(feeding, url);
    const [peer] = await connected;
    let open = true;
    peer.on("close", () => {
      open = false;
    });
    // Empty fragments of one message that never becomes complete.
    const flood = (): void => {
      for (let piece = 0; open && piece < 200; piece += 1) peer.send("", { fin: false });
      if (open) setImmediate(flood);
    };
    flood();
    await vi.waitFor(() => expect(seen).toEqual(["opened"]), WAIT);
    subscriber.end();
    await vi.waitFor(() => expect([open, feedThreads()]).toEqual([false, 0]), WAIT);
    expect(seen).toEqual(["opened"]);
  });

  it("takes so much in a turn where the node says more than can be taken", async () => {
    const { gate, feeding } = gated();
    let slot = 0;
    const endless: NativeSlotSubscribing = {
      ...feeding,
      slotSubscriberOpen(_url, _authorization, _timeoutMs, wake) {
        gate.wake = wake;
        return 1;
      },
      slotSubscriberNext(_feed, out) {
        slot += 1;
        // Ends the loop of a reader without a limit.
        out.set([slot < 10_000 ? 4 : 6, 1, slot, 0]);
        return 1;
      },
      slotSubscriberClose: () => 0,
    };
    const { subscriber, seen } = listenTo(endless, "ws://127.0.0.1:1");
    gate.wake();
    gate.wake();
    expect(seen).toHaveLength(64);
    await aTurn();
    expect(seen).toHaveLength(128);
    subscriber.end();
    gate.wake();
    await aTurn();
    expect(seen).toHaveLength(128);
  });

  it("is closed where the engine has no room for it, once whoever opens it has it", async () => {
    const { feeding } = gated();
    const full = { ...feeding, slotSubscriberOpen: () => SLOT_SUBSCRIBER_FULL };
    const { subscriber, seen } = listenTo(full, "ws://127.0.0.1:1");
    expect(seen).toEqual([]);
    expect(await subscriber.subscribe("slot")).toBe(false);
    expect(seen).toEqual(["closed"]);
    const ended = listenTo(full, "ws://127.0.0.1:1");
    ended.subscriber.end();
    await Promise.resolve();
    expect(ended.seen).toEqual([]);
  });

  it("has as many as there is room for, and room again when they ended", async () => {
    const { url } = await startNode();
    const { feeding } = gated();
    await vi.waitFor(() => expect(feedThreads()).toBe(0), WAIT);
    const opened: number[] = [];
    const open = (): number => feeding.slotSubscriberOpen(url, "", 30_000, () => undefined);
    for (let handle = open(); handle > 0; handle = open()) opened.push(handle);
    endings.push(() => {
      for (const handle of opened) feeding.slotSubscriberClose(handle);
    });
    expect([opened.length, open()]).toEqual([64, SLOT_SUBSCRIBER_FULL]);
    for (const handle of opened.splice(0)) expect(feeding.slotSubscriberClose(handle)).toBe(0);
    await vi.waitFor(() => {
      const handle = open();
      if (handle > 0) opened.push(handle);
      expect(handle).toBeGreaterThan(0);
    }, WAIT);
  });
});
