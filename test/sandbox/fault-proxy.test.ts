import { createSocket, type Socket } from "node:dgram";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { createFaultProxy, type FaultProxy, type Faults } from "../../src/sandbox/fault-proxy.ts";
import { until } from "../support/wait.ts";

const open: { sockets: Socket[]; proxies: FaultProxy[] } = { sockets: [], proxies: [] };

afterEach(async () => {
  for (const proxy of open.proxies) await proxy.stop();
  for (const socket of open.sockets) socket.close();
  open.proxies = [];
  open.sockets = [];
});

async function bind(): Promise<Socket> {
  const socket = createSocket("udp4");
  open.sockets.push(socket);
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return socket;
}

/**
 * A client and an echo server with a proxy in between; `send` numbers datagrams, from 1 on. Those
 * that open the way have the number 0, and may arrive at any time.
 */
async function setUp(faults: Partial<Faults>, seed = 7) {
  const echo = await bind();
  const arrived: number[] = [];
  echo.on("message", (bytes, from) => {
    const number = bytes.readUInt32BE();
    if (number > 0) arrived.push(number);
    echo.send(bytes, from.port, from.address);
  });
  const target = `127.0.0.1:${echo.address().port}`;
  const proxy = createFaultProxy({ clock: systemClock, target, seed });
  open.proxies.push(proxy);
  const port = Number((await proxy.start()).address.split(":")[1]);
  const client = await bind();
  const answered: number[] = [];
  let isThrough = false;
  client.on("message", (bytes) => {
    const number = bytes.readUInt32BE();
    if (number > 0) answered.push(number);
    else isThrough = true;
  });
  const send = (number: number): void => {
    const bytes = Buffer.alloc(50);
    bytes.writeUInt32BE(number);
    client.send(bytes, port, "127.0.0.1");
  };
  // The first is lost while the client's port towards the target is being bound.
  send(0);
  await until("the way through", () => {
    if (!isThrough) send(0);
    return isThrough;
  });
  proxy.setFaults(faults);
  return { proxy, arrived, answered, send };
}

async function sendAll(send: (number: number) => void, count: number): Promise<void> {
  for (let number = 1; number <= count; number += 1) {
    send(number);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("a fault proxy", () => {
  it("forwards everything in both directions when no fault is configured", async () => {
    const { arrived, answered, send } = await setUp({});
    await sendAll(send, 100);
    await until("all responses", () => new Set(answered).size >= 100);
    expect(new Set(arrived).size).toBeGreaterThanOrEqual(100);
  });

  it("drops, duplicates and reorders about the configured share", async () => {
    const { proxy, arrived, send } = await setUp({
      loss: 0.2,
      duplicate: 0.2,
      reorder: 0.2,
      delayMs: 1,
      jitterMs: 5,
    });
    await sendAll(send, 500);
    await until("most of them", () => new Set(arrived).size > 350);
    const { lost, doubled, reordered } = proxy.counters;
    for (const count of [lost, doubled, reordered]) expect(count).toBeGreaterThan(60);
    expect(arrived.length).toBeGreaterThan(new Set(arrived).size);
    expect([...arrived].sort((a, b) => a - b)).not.toEqual(arrived);
  });

  it("forwards nothing when the loss is complete", async () => {
    const { proxy, arrived, send } = await setUp({ loss: 1 });
    await sendAll(send, 50);
    await until("all were lost", () => proxy.counters.lost >= 50);
    expect(arrived).toEqual([]);
  });

  it("rejects a target that is not an address", () => {
    const make = () => createFaultProxy({ clock: systemClock, target: "here", seed: 1 });
    expect(make).toThrow(RangeError);
  });
});
