import type { Socket } from "node:dgram";
import { EventEmitter } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { SOCKET_QUEUE_BYTES_MAX } from "../../../src/send/limits.ts";
import {
  type DatagramCounters,
  DatagramSocket,
  newDatagramCounters,
  type OnDatagram,
  openDatagramSocket,
} from "../../../src/send/portable/datagram.ts";
import { until } from "../../support/wait.ts";

const open: DatagramSocket[] = [];

afterEach(() => {
  for (const socket of open.splice(0)) socket.close();
});

interface Arrival {
  readonly text: string;
  readonly host: string;
  readonly port: number;
}

/** A bound socket with its received datagrams. */
async function bound(host = "127.0.0.1") {
  const counters = newDatagramCounters();
  const arrivals: Arrival[] = [];
  const note: OnDatagram = (bytes, from, port) => {
    arrivals.push({ text: Buffer.from(bytes).toString(), host: from, port });
  };
  const socket = await openDatagramSocket(host, 0, note, counters);
  open.push(socket);
  return { socket, counters, arrivals };
}

/** Writes `text` and more after it, and sends the text only. */
function send(from: DatagramSocket, text: string, host: string, port: number): void {
  from.scratch.set(Buffer.from(`${text} and what is not sent`));
  from.flush(text.length, host, port);
}

describe("a socket", () => {
  it.each(["127.0.0.1", "::1"])("sends the contents of its scratch, over %s", async (host) => {
    const [a, b] = [await bound(host), await bound(host)];
    send(a.socket, "first", host, b.socket.port);
    send(a.socket, "second", host, b.socket.port);
    await until("both arrive", () => b.arrivals.length === 2);
    const { port } = a.socket;
    expect(a.socket.host).toBe(host);
    expect(b.arrivals).toEqual([
      { text: "first", host, port },
      { text: "second", host, port },
    ]);
    expect(a.counters).toMatchObject({ datagramsOut: 2, bytesOut: 11, socketErrors: 0 });
    expect(b.counters).toMatchObject({ datagramsIn: 2, bytesIn: 11, socketErrors: 0 });
  });

  it("counts what the system rejects, and continues", async () => {
    const [a, b] = [await bound(), await bound()];
    send(a.socket, "x", "127.0.0.1", 65_536);
    send(a.socket, "x", "127.0.0.1", 0);
    expect(a.counters.socketErrors).toBe(2);
    expect(a.counters.datagramsOut).toBe(0);
    send(a.socket, "y", "127.0.0.1", b.socket.port);
    await until("the good one arrives", () => b.arrivals.length === 1);
  });

  it("sends nothing after it was closed, and may be closed twice", async () => {
    const { socket, counters } = await bound();
    socket.close();
    socket.close();
    send(socket, "x", "127.0.0.1", 9);
    expect(counters).toEqual(newDatagramCounters());
  });

  it("is not bound to an address in use", async () => {
    const { socket } = await bound();
    const again = openDatagramSocket("127.0.0.1", socket.port, () => {}, newDatagramCounters());
    await expect(again).rejects.toMatchObject({ code: "EADDRINUSE" });
  });
});

/** The system's socket, with a configurable queue length. */
class FakeSystemSocket extends EventEmitter {
  queueBytes = 0;
  queueCount = 0;
  readonly sent: Uint8Array[] = [];
  address = () => ({ address: "127.0.0.1", port: 9, family: "IPv4" });
  getSendQueueSize = () => this.queueBytes;
  getSendQueueCount = () => this.queueCount;
  send = (bytes: Uint8Array, offset: number, size: number): void => {
    this.sent.push(bytes.subarray(offset, offset + size));
  };
}

function overFake() {
  const system = new FakeSystemSocket();
  const counters: DatagramCounters = newDatagramCounters();
  // It has the methods that a DatagramSocket calls.
  const socket = new DatagramSocket(system as unknown as Socket, () => {}, counters);
  return { system, counters, socket };
}

describe("a full kernel buffer", () => {
  it("queues a datagram whose bytes are then not overwritten", () => {
    const { system, counters, socket } = overFake();
    system.queueCount = 1;
    send(socket, "kept", "127.0.0.1", 9);
    system.queueCount = 0;
    send(socket, "next", "127.0.0.1", 9);
    expect(system.sent.map((bytes) => Buffer.from(bytes).toString())).toEqual(["kept", "next"]);
    expect(counters).toMatchObject({ datagramsOut: 2, datagramsDelayed: 1, datagramsDropped: 0 });
  });

  it("keeps the same scratch as long as nothing is queued", () => {
    const { socket } = overFake();
    const { scratch } = socket;
    send(socket, "gone", "127.0.0.1", 9);
    expect(socket.scratch).toBe(scratch);
  });

  it("gets no more once the queue is above the bound", () => {
    const { system, counters, socket } = overFake();
    system.queueBytes = SOCKET_QUEUE_BYTES_MAX;
    send(socket, "last", "127.0.0.1", 9);
    system.queueBytes += 1;
    send(socket, "dropped", "127.0.0.1", 9);
    expect(system.sent).toHaveLength(1);
    expect(counters).toMatchObject({ datagramsOut: 1, datagramsDropped: 1 });
  });

  it("may emit an error itself, which is counted", () => {
    const { system, counters } = overFake();
    system.emit("error", new Error("ENOBUFS"));
    expect(counters.socketErrors).toBe(1);
  });
});
