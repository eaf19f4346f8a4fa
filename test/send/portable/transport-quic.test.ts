import { createSocket, type Socket } from "node:dgram";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import type { LeaderBehaviour } from "../../../src/sandbox/leader.ts";
import { freshIdentity } from "../../../src/send/identity.ts";
import { connectionKeyOf, createQuicTransport } from "../../../src/send/portable/transport-quic.ts";
import { QUIC_TRANSPORT_DEFAULTS } from "../../../src/send/portable/transport-quic-options.ts";
import { ACKED, BLOCKED, CLOSED, TOO_LARGE, type Transport } from "../../../src/send/transport.ts";
import { NO_EVENTS } from "../../support/fake-transport.ts";
import { until } from "../../support/wait.ts";
import { connectTo, payload, startLeader, startTransport, type TestLeader } from "../loopback.ts";

const open: { leaders: TestLeader[]; transports: Transport[]; sockets: Socket[] } = {
  leaders: [],
  transports: [],
  sockets: [],
};

afterEach(async () => {
  for (const transport of open.transports) await transport.stop();
  for (const { leader } of open.leaders) await leader.stop();
  for (const socket of open.sockets) socket.close();
  open.transports = [];
  open.leaders = [];
  open.sockets = [];
});

async function leaderWith(behaviour: Partial<LeaderBehaviour> = {}, host = "127.0.0.1") {
  const leader = await startLeader(behaviour, host);
  open.leaders.push(leader);
  return leader;
}

async function transportWith(...args: Parameters<typeof startTransport>): Promise<Transport> {
  const transport = await startTransport(...args);
  open.transports.push(transport);
  return transport;
}

async function admitted(behaviour: Partial<LeaderBehaviour> = {}) {
  const leader = await leaderWith(behaviour);
  const identity = freshIdentity();
  const transport = await transportWith(identity);
  const link = connectTo(transport, leader.address);
  await until("admission", () => link.connection.admitted);
  return { leader, transport, identity, ...link };
}

describe("a connection to a leader", () => {
  it.each([1, 134, 1232, 1233, 4095, 4096])("carries %i bytes unchanged", async (size) => {
    const { leader, connection, results } = await admitted();
    const stream = connection.send(payload(size));
    expect(stream).toBeGreaterThanOrEqual(0);
    await until("arrival", () => leader.received.length === 1);
    expect(Uint8Array.from(leader.received[0]?.bytes ?? [])).toEqual(payload(size));
    await until("acknowledgement", () => results.get(stream) === ACKED);
  });

  it.each([
    [2_000, 2_000],
    [0, Number.POSITIVE_INFINITY],
  ])("knows the leader's idle timeout of %i ms", async (idleTimeoutMs, known) => {
    const { connection } = await admitted({ idleTimeoutMs });
    expect(connection.idleTimeoutMs).toBe(known);
  });

  it("presents the identity's key", async () => {
    const { leader, connection, identity } = await admitted();
    connection.send(payload(200));
    await until("arrival", () => leader.received.length === 1);
    expect(leader.received[0]?.peerPubkey).toEqual(identity.publicKey);
  });

  it("puts the largest legacy transaction into one datagram, immediately", async () => {
    const { transport, connection } = await admitted();
    await until("quiet", () => connection.established);
    const before = transport.counters["datagramsOut"] ?? 0;
    connection.send(payload(1232));
    expect((transport.counters["datagramsOut"] ?? 0) - before).toBe(1);
  });

  it("needs two datagrams for it where the operator lowered their size", async () => {
    const leader = await leaderWith();
    const transport = await transportWith(freshIdentity(), { datagramBytesMax: 1200 });
    const { connection } = connectTo(transport, leader.address);
    await until("admission", () => connection.admitted);
    const before = transport.counters["datagramsOut"] ?? 0;
    connection.send(payload(1232));
    expect((transport.counters["datagramsOut"] ?? 0) - before).toBe(2);
    await until("arrival", () => leader.received.length === 1);
  });

  it("rejects what can never fit, and stays open", async () => {
    const { connection, leader } = await admitted();
    expect(connection.send(payload(4097))).toBe(TOO_LARGE);
    connection.send(payload(100));
    await until("arrival", () => leader.received.length === 1);
  });

  it("is blocked without granted streams, and continues when they are renewed", async () => {
    const { connection, leader } = await admitted({ reading: "stalled" });
    let sent = 0;
    await until("the last stream", () => {
      while (sent < 128 && connection.send(payload(50)) >= 0) sent += 1;
      return sent === 128;
    });
    expect(connection.send(payload(50))).toBe(BLOCKED);
    leader.leader.setBehaviour({ reading: "all" });
    await until("credit", () => connection.send(payload(50)) >= 0);
    await until("arrival", () => leader.received.length === 129);
  });

  it("never leaves a transaction half written when the window is short", async () => {
    const { connection, leader, cause } = await admitted();
    const sizes: number[] = [];
    let turn = 0;
    await until("the last one", () => {
      for (let room = true; room && sizes.length < 200; turn += 1) {
        const size = 1 + ((turn * 977) % 4096);
        room = connection.send(payload(size, turn)) >= 0;
        if (room) sizes.push(size);
      }
      return sizes.length === 200;
    });
    await until("arrival", () => leader.received.length === 200);
    const sorted = (list: number[]): number[] => list.sort((left, right) => left - right);
    expect(sorted(leader.received.map((it) => it.bytes.length))).toEqual(sorted(sizes));
    expect(cause()).toBeNull();
  });

  it("works through a server that demands a token first", async () => {
    const { leader, connection } = await admitted({ retry: true });
    connection.send(payload(100));
    await until("arrival", () => leader.received.length === 1);
    expect(leader.leader.counters.retries).toBe(1);
    expect(connection.retried).toBe(true);
  });

  it("reports the grant, that no token was demanded, and received datagrams", async () => {
    const { leader, connection } = await admitted();
    expect([connection.retried, connection.streamsLeft]).toEqual([false, 128]);
    const received = connection.datagramsReceived;
    expect(received).toBeGreaterThan(0);
    connection.send(payload(100));
    expect(connection.streamsLeft).toBe(127);
    await until("arrival", () => leader.received.length === 1);
    connection.ping();
    await until("a response", () => connection.datagramsReceived > received);
  });

  it("works over IPv6", async () => {
    const leader = await leaderWith({}, "::1");
    const transport = await transportWith(freshIdentity(), { bindIpv4: null, bindIpv6: "::1" });
    const { connection } = connectTo(transport, leader.address);
    await until("admission", () => connection.admitted);
    connection.send(payload(100));
    await until("arrival", () => leader.received.length === 1);
  });
});

describe("the end of a connection", () => {
  it.each([0, 1, 2, 4, 5])("is reported with the leader's code %i", async (code) => {
    const { leader, connection, cause } = await admitted();
    // Once the leader has read a transaction its handshake is confirmed; before that, RFC 9000
    // (10.2.3) has it close with a transport code instead of its own.
    connection.send(payload(10));
    await until("arrival", () => leader.received.length === 1);
    leader.leader.closeAll(code, "because");
    await until("the end", () => cause() !== null);
    expect(cause()).toEqual({ kind: "app", code });
    expect(connection.send(payload(10))).toBe(CLOSED);
  });

  it("is reported as a transport code when the leader rejects", async () => {
    const leader = await leaderWith({ admission: "refuse" });
    const { cause } = connectTo(await transportWith(), leader.address);
    await until("the end", () => cause() !== null);
    expect(cause()).toEqual({ kind: "transport", code: 2 });
  });

  it("is reported as silence without a response for the idle time", async () => {
    const leader = await leaderWith({ admission: "silent" });
    const transport = await transportWith(freshIdentity(), { idleTimeoutMs: 300 });
    const { cause } = connectTo(transport, leader.address);
    await until("the end", () => cause() !== null);
    expect(cause()).toEqual({ kind: "silence", code: 0 });
  });

  it("is prevented by pings", async () => {
    const leader = await leaderWith();
    const transport = await transportWith(freshIdentity(), { idleTimeoutMs: 300 });
    // quiche uses its own clock: if the machine pauses longer than that, a connection correctly
    // ends, and another attempt must pass.
    for (let pauseNs = Number.POSITIVE_INFINITY; pauseNs > 100e6; ) {
      pauseNs = 0;
      let lastNs = systemClock.nowNs();
      const endNs = lastNs + 1_000e6;
      const { connection, cause } = connectTo(transport, leader.address);
      await until("three idle times", () => {
        connection.ping();
        const nowNs = systemClock.nowNs();
        pauseNs = Math.max(pauseNs, nowNs - lastNs);
        lastNs = nowNs;
        return nowNs > endNs;
      });
      if (pauseNs <= 100e6) expect(cause()).toBeNull();
      connection.close();
    }
  });

  it("is not reported when local, and the leader receives it", async () => {
    const { leader, connection, cause } = await admitted();
    connection.close();
    await until("the leader receives the close", () => leader.leader.connectionCount === 0);
    expect(cause()).toBeNull();
    expect(connection.send(payload(10))).toBe(CLOSED);
    connection.ping();
    connection.close();
  });
});

describe("the transport", () => {
  it("starts no connection to an invalid address or without a socket", async () => {
    const transport = await transportWith();
    const events = NO_EVENTS;
    expect(transport.connect("example.org:80", events)).toBeNull();
    expect(transport.connect("[::1]:80", events)).toBeNull();
  });

  it("ignores datagrams of no connection, whatever they hold", async () => {
    const { transport, connection, leader } = await admitted();
    const stranger = createSocket("udp4");
    open.sockets.push(stranger);
    const port = Number(transport.counters["port"] ?? 0);
    expect(port).toBe(0);
    const before = transport.counters["datagramsUnmatched"] ?? 0;
    await sprayFrom(stranger, leader);
    connection.send(payload(100));
    await until("arrival", () => leader.received.length === 1);
    expect(transport.counters["datagramsUnmatched"]).toBe(before);
  });

  it("reads the key of a connection from both header forms", () => {
    expect(connectionKeyOf(Uint8Array.of(0x40, 1, 2, 3, 4, 9))).toBe(0x01020304);
    const long = Uint8Array.of(0xc0, 0, 0, 0, 1, 16, 0xff, 2, 3, 4, 9);
    expect(connectionKeyOf(long)).toBe(0xff020304);
    expect(connectionKeyOf(Uint8Array.of(0x40, 1, 2))).toBe(-1);
    expect(connectionKeyOf(new Uint8Array(0))).toBe(-1);
  });

  it("rejects a datagram size outside what QUIC and leaders allow", () => {
    for (const datagramBytesMax of [1199, 1453]) {
      const make = () =>
        createQuicTransport(
          { clock: systemClock, identity: freshIdentity() },
          { ...QUIC_TRANSPORT_DEFAULTS, datagramBytesMax },
        );
      expect(make).toThrow(RangeError);
    }
  });
});

/** Sends datagrams that are not QUIC, or half of it, to the leader. */
async function sprayFrom(socket: Socket, { address }: TestLeader): Promise<void> {
  const port = Number(address.split(":")[1]);
  for (let size = 0; size < 64; size += 1) {
    const bytes = payload(size, size);
    await new Promise((resolve) => socket.send(bytes, port, "127.0.0.1", resolve));
  }
}
