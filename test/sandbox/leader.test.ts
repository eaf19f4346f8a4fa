import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { createSimulatedLeader, type LeaderBehaviour } from "../../src/sandbox/leader.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { tlsIdentityOf } from "../../src/send/portable/certificate.ts";
import { type QuicheConnection, quiche, quicheConfig } from "../../src/send/portable/quiche.ts";
import type { Transport } from "../../src/send/transport.ts";
import {
  connectTo,
  payload,
  startLeader,
  startTransport,
  type TestLeader,
} from "../send/loopback.ts";
import { everyMoment, until } from "../support/wait.ts";

const open: { leaders: TestLeader[]; transports: Transport[]; closers: (() => void)[] } = {
  leaders: [],
  transports: [],
  closers: [],
};

afterEach(async () => {
  for (const transport of open.transports) await transport.stop();
  for (const { leader } of open.leaders) await leader.stop();
  for (const close of open.closers) close();
  open.transports = [];
  open.leaders = [];
  open.closers = [];
});

async function startFixture(behaviour: Partial<LeaderBehaviour> = {}) {
  const leader = await startLeader(behaviour);
  open.leaders.push(leader);
  const transport = await startTransport();
  open.transports.push(transport);
  return { ...leader, transport };
}

/** A bare QUIC client, for actions that the sender never takes. */
async function rawClient(address: string, certificate = true): Promise<QuicheConnection> {
  const [host = "", port = "0"] = address.split(":");
  const config = certificate ? quicheConfig(tlsIdentityOf(freshIdentity()), false) : bareConfig();
  config.setMaxIdleTimeout(5_000);
  config.setInitialMaxData(0);
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const local = { host: "127.0.0.1", port: socket.address().port };
  const remote = { host, port: Number(port) };
  const id = randomBytes(16);
  const connection = quiche.Connection.connect("leader", id, local, remote, config);
  const flush = (): void => {
    const buffer = new Uint8Array(1500);
    for (let out = connection.send(buffer); out !== null; out = connection.send(buffer)) {
      socket.send(Uint8Array.from(buffer.subarray(0, out[0])), remote.port, remote.host);
    }
  };
  socket.on("message", (bytes) => {
    try {
      connection.recv(bytes, { from: remote, to: local });
    } catch {
      // The test reads the error from the connection.
    }
    flush();
  });
  const stopPump = everyMoment(flush);
  open.closers.push(() => {
    stopPump();
    socket.close();
  });
  flush();
  return connection;
}

function bareConfig() {
  const config = quiche.Config.withBoringSslCtx(false, false, null, null, null, "ed25519");
  config.setApplicationProtos(["solana-tpu"]);
  return config;
}

describe("a simulated leader", () => {
  it("emits transactions with the sender's key and the time", async () => {
    const identity = freshIdentity();
    const leader = createSimulatedLeader({ clock: systemClock, identity: freshIdentity() });
    const { address } = await leader.start();
    const transport = await startTransport(identity);
    open.transports.push(transport);
    const { connection } = connectTo(transport, address);
    await until("admission", () => connection.admitted);
    const sentNs = systemClock.nowNs();
    const arrival = new Promise<void>((resolve) => {
      leader.onTransaction((bytes, origin) => {
        expect(Uint8Array.from(bytes)).toEqual(payload(300));
        expect(origin.peerPubkey).toEqual(identity.publicKey);
        expect(origin.atNs).toBeGreaterThan(sentNs);
        resolve();
      });
    });
    connection.send(payload(300));
    await arrival;
    expect(leader.counters.transactions).toBe(1);
    await leader.stop();
  });

  it("rejects a client without a certificate", async () => {
    const { address } = await startFixture();
    const client = await rawClient(address, false);
    await until("the alert", () => client.peerError() !== null);
    // RFC 9001 section 4.8: 0x100 and the TLS alert certificate_required.
    expect(client.peerError()).toMatchObject({ isApp: false, errorCode: 0x100 + 116 });
  });

  it("closes with code 5 on a stream without a byte", async () => {
    const { address, leader } = await startFixture();
    const client = await rawClient(address);
    await until("the handshake", () => client.isEstablished());
    client.streamSend(2, new Uint8Array(0), true);
    await until("the close", () => client.peerError() !== null);
    expect(client.peerError()).toMatchObject({ isApp: true, errorCode: 5 });
    expect(leader.counters.invalidStreams).toBe(1);
  });

  it("closes on a stream of more than 4096 bytes", async () => {
    const { address } = await startFixture();
    const client = await rawClient(address);
    await until("the handshake", () => client.isEstablished());
    client.streamSend(2, payload(4096), false);
    await until("the close", () => {
      if (client.peerError() !== null) return true;
      client.streamSend(2, payload(1), false);
      return false;
    });
    expect(client.peerError()).toMatchObject({ isApp: true, errorCode: 5 });
  });

  it("closes the ninth connection of an address with code 4", async () => {
    const { address, transport, leader } = await startFixture();
    const links = Array.from({ length: 9 }, () => connectTo(transport, address));
    await until("the ninth is closed", () => links.some((it) => it.cause() !== null));
    const ended = links.filter((it) => it.cause() !== null);
    expect(ended.map((it) => it.cause())).toEqual([{ kind: "app", code: 4 }]);
    expect(leader.counters.connectionsTooMany).toBe(1);
  });

  it("closes new connections with the configured code until that is reset", async () => {
    const { address, transport, leader } = await startFixture({
      closeNew: { code: 2, reason: "disallowed" },
    });
    const first = connectTo(transport, address);
    await until("the end", () => first.cause() !== null);
    expect(first.cause()).toEqual({ kind: "app", code: 2 });
    leader.setBehaviour({ closeNew: null });
    const second = connectTo(transport, address);
    await until("admission", () => second.connection.admitted);
    expect(second.cause()).toBeNull();
  });

  it("does not respond while it is silent", async () => {
    const { address, transport, leader } = await startFixture({ admission: "silent" });
    const { connection } = connectTo(transport, address);
    await until("it was ignored", () => leader.counters.connectionsIgnored > 0);
    expect(connection.established).toBe(false);
  });

  it("leaves what arrives while it is stalled unread, and reads it afterwards", async () => {
    const { address, transport, leader, received } = await startFixture({ reading: "stalled" });
    const { connection, results } = connectTo(transport, address);
    await until("admission", () => connection.admitted);
    const stream = connection.send(payload(100));
    await until("acknowledgement", () => results.has(stream));
    expect(received.length).toBe(0);
    leader.setBehaviour({ reading: "all" });
    await until("arrival", () => received.length === 1);
  });

  it("returns on the same port", async () => {
    const { address, transport, leader, received } = await startFixture();
    const first = connectTo(transport, address);
    await until("admission", () => first.connection.admitted);
    // Once the leader's handshake has finished as well, it closes with its own code.
    first.connection.send(payload(20));
    await until("arrival", () => received.length === 1);
    await leader.stop();
    await until("the end", () => first.cause() !== null);
    expect(first.cause()).toEqual({ kind: "app", code: 1 });
    expect(await leader.start()).toEqual({ address });
    const second = connectTo(transport, address);
    await until("admission", () => second.connection.admitted);
    second.connection.send(payload(10));
    await until("arrival", () => received.length === 2);
  });
});
