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
const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const end of cleanups.splice(0).reverse()) end();
});

async function startNode() {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  cleanups.push(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  // A TCP server's address is always an AddressInfo.
  const { port } = server.address() as AddressInfo;
  return { server, url: `ws://127.0.0.1:${port}` };
}

/** The engine; its event reads return nothing while `isOpen` is false. */
function createGatedEngine() {
  if (native === null) throw new Error("the native engine is not built");
  const real = native;
  const gate = { isOpen: true, wake: (): void => undefined };
  const engine: NativeSlotSubscribing = {
    ...real,
    slotSubscriberOpen(url, authorization, timeoutMs, wake) {
      gate.wake = wake;
      return real.slotSubscriberOpen(url, authorization, timeoutMs, wake);
    },
    slotSubscriberNext: (subscriber, out) =>
      gate.isOpen ? real.slotSubscriberNext(subscriber, out) : 0,
  };
  return { gate, engine };
}

function subscribeTo(engine: NativeSlotSubscribing, url: string) {
  const counters = createClusterCounters();
  const events: string[] = [];
  const subscriber = openNativeSlotSubscriber({ native: engine, counters }, url, 30_000, {
    opened: () => events.push("opened"),
    event: (name, kind, slot) => events.push(`${name} ${kind} ${slot}`),
    closed: () => events.push("closed"),
  });
  cleanups.push(() => subscriber.end());
  return { subscriber, events, counters };
}

/** The number of subscription threads of this process. */
function subscriptionThreads(): number {
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

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const slotNotification = (slot: number): string =>
  JSON.stringify({ method: "slotNotification", params: { result: { slot } } });

describe.skipIf(native === null)("slot subscription on a native thread", () => {
  it("drops and counts unread events above 256, and reports everything else", async () => {
    const { server, url } = await startNode();
    const { gate, engine } = createGatedEngine();
    const connected = once(server, "connection") as Promise<[WebSocket]>;
    const { subscriber, events, counters } = subscribeTo(engine, url);
    const [peer] = await connected;
    peer.on("message", () => peer.send('{"id":2,"result":1}'));
    await vi.waitFor(() => expect(events).toEqual(["opened"]), WAIT);
    gate.isOpen = false;
    for (let slot = 1; slot <= 300; slot += 1) peer.send(slotNotification(slot));
    peer.ping();
    await once(peer, "pong");
    const pending = subscriber.subscribe("slot");
    await once(peer, "message");
    peer.close();
    await once(peer, "close");
    expect(events).toEqual(["opened"]);
    gate.isOpen = true;
    gate.wake();
    expect(await pending).toBe(true);
    expect(events[256]).toBe("slot start 256");
    expect(counters.slotEventsLost).toBe(44);
    await vi.waitFor(() => expect(events.at(-1)).toBe("closed"), WAIT);
    expect(counters.slotEventsLost).toBe(44);
  });

  it("stops its thread when it ends, in every connection state", async () => {
    const { server, url } = await startNode();
    const { engine } = createGatedEngine();
    // Waits for the threads of earlier tests to exit.
    await vi.waitFor(() => expect(subscriptionThreads()).toBe(0), WAIT);
    const all = Array.from({ length: 8 }, () => subscribeTo(engine, url));
    await vi.waitFor(() => expect(server.clients.size).toBe(8), WAIT);
    expect(subscriptionThreads()).toBe(8);
    for (const { subscriber } of all.slice(0, 4)) subscriber.end();
    await vi.waitFor(() => expect(subscriptionThreads()).toBe(4), WAIT);
    for (const socket of server.clients) socket.terminate();
    await vi.waitFor(() => expect(subscriptionThreads()).toBe(0), WAIT);
    await vi.waitFor(
      () => expect(all.map(({ events }) => events.includes("closed")).indexOf(true)).toBe(4),
      WAIT,
    );
  });

  it("ends while the node sends faster than it is read", async () => {
    const { server, url } = await startNode();
    const { engine } = createGatedEngine();
    const connected = once(server, "connection") as Promise<[WebSocket]>;
    const { subscriber, events } = subscribeTo(engine, url);
    const [peer] = await connected;
    let open = true;
    peer.on("close", () => {
      open = false;
    });
    // Empty fragments of a message that is never completed.
    const sendFragments = (): void => {
      for (let sent = 0; open && sent < 200; sent += 1) peer.send("", { fin: false });
      if (open) setImmediate(sendFragments);
    };
    sendFragments();
    await vi.waitFor(() => expect(events).toEqual(["opened"]), WAIT);
    subscriber.end();
    await vi.waitFor(() => expect([open, subscriptionThreads()]).toEqual([false, 0]), WAIT);
    expect(events).toEqual(["opened"]);
  });

  it("reads at most 64 events per event loop turn", async () => {
    const { gate, engine } = createGatedEngine();
    let slot = 0;
    const endlessEngine: NativeSlotSubscribing = {
      ...engine,
      slotSubscriberOpen(_url, _authorization, _timeoutMs, wake) {
        gate.wake = wake;
        return 1;
      },
      slotSubscriberNext(_feed, out) {
        slot += 1;
        // A reader without a limit ends here instead of looping forever.
        out.set([slot < 10_000 ? 4 : 6, 1, slot, 0]);
        return 1;
      },
      slotSubscriberClose: () => 0,
    };
    const { subscriber, events } = subscribeTo(endlessEngine, "ws://127.0.0.1:1");
    gate.wake();
    gate.wake();
    expect(events).toHaveLength(64);
    await nextTurn();
    expect(events).toHaveLength(128);
    subscriber.end();
    gate.wake();
    await nextTurn();
    expect(events).toHaveLength(128);
  });

  it("reports closed after the open call returned if the engine is full", async () => {
    const { engine } = createGatedEngine();
    const fullEngine = { ...engine, slotSubscriberOpen: () => SLOT_SUBSCRIBER_FULL };
    const { subscriber, events } = subscribeTo(fullEngine, "ws://127.0.0.1:1");
    expect(events).toEqual([]);
    expect(await subscriber.subscribe("slot")).toBe(false);
    expect(events).toEqual(["closed"]);
    const ended = subscribeTo(fullEngine, "ws://127.0.0.1:1");
    ended.subscriber.end();
    await Promise.resolve();
    expect(ended.events).toEqual([]);
  });

  it("allows 64 subscriptions, and new ones after those have ended", async () => {
    const { url } = await startNode();
    const { engine } = createGatedEngine();
    await vi.waitFor(() => expect(subscriptionThreads()).toBe(0), WAIT);
    const opened: number[] = [];
    const open = (): number => engine.slotSubscriberOpen(url, "", 30_000, () => undefined);
    for (let handle = open(); handle > 0; handle = open()) opened.push(handle);
    cleanups.push(() => {
      for (const handle of opened) engine.slotSubscriberClose(handle);
    });
    expect([opened.length, open()]).toEqual([64, SLOT_SUBSCRIBER_FULL]);
    for (const handle of opened.splice(0)) expect(engine.slotSubscriberClose(handle)).toBe(0);
    await vi.waitFor(() => {
      const handle = open();
      if (handle > 0) opened.push(handle);
      expect(handle).toBeGreaterThan(0);
    }, WAIT);
  });
});
