import { describe, expect, it } from "vitest";
import { V1_TRANSACTION_BYTES_MAX } from "../../src/core/limits.ts";
import { LeaderConnection } from "../../src/sandbox/leader-connection.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import {
  anonymousConfig,
  CLIENT,
  clientConfig,
  endOf,
  exchange,
  memorySocket,
  newClient,
  newServer,
} from "../support/quic-memory.ts";

const FIRST = 2;
const SECOND = 6;

/** A leader's connection and a bare client, joined manually; `meet` exchanges their packets. */
function setup(config = clientConfig()) {
  const { socket, take } = memorySocket();
  const observed = { established: 0, invalid: 0, stalled: false, late: false };
  const received: { bytes: string; peer: Uint8Array | null }[] = [];
  const connection = new LeaderConnection(newServer(), CLIENT, socket, {
    established: () => {
      observed.established += 1;
    },
    transaction: (bytes, peer) => {
      received.push({ bytes: Buffer.from(bytes).toString(), peer });
    },
    invalidStream: () => {
      observed.invalid += 1;
    },
    stalled: () => observed.stalled,
    nowNs: () => 0,
    tooLate: () => observed.late,
  });
  const client = newClient(config);
  const wire = endOf(client, CLIENT);
  const leader = { take, receive: (bytes: Uint8Array) => connection.receive(bytes) };
  const meet = (): void => exchange(wire, leader);
  const write = (stream: number, text: string, ended: boolean): void => {
    const bytes = Buffer.from(text);
    expect(client.streamSend(stream, bytes, ended)).toBe(bytes.length);
    meet();
  };
  return { connection, client, wire, meet, write, observed, received };
}

function established() {
  const fixture = setup();
  fixture.meet();
  expect(fixture.connection.established).toBe(true);
  return fixture;
}

describe("a leader's connection", () => {
  it("emits a transaction that arrives in fragments, unless the last one is too late", () => {
    const { write, observed, received } = established();
    write(FIRST, "early", false);
    write(FIRST, " end", true);
    write(SECOND, "late", false);
    observed.late = true;
    write(SECOND, " end", true);
    expect(received.map(({ bytes }) => bytes)).toEqual(["early end"]);
  });

  it("reports its handshake once, and emits transactions with the client's key", () => {
    const identity = freshIdentity();
    const { meet, write, observed, received } = setup(clientConfig(identity));
    expect(observed.established).toBe(0);
    meet();
    write(FIRST, "one", true);
    write(SECOND, "two", true);
    expect(observed.established).toBe(1);
    expect(received).toEqual([
      { bytes: "one", peer: identity.publicKey },
      { bytes: "two", peer: identity.publicKey },
    ]);
  });

  it("joins the fragments of a stream, and keeps streams separate", () => {
    const { write, received } = established();
    write(FIRST, "on", false);
    write(SECOND, "t", false);
    write(SECOND, "wo", true);
    expect(received.map(({ bytes }) => bytes)).toEqual(["two"]);
    write(FIRST, "e", true);
    expect(received.map(({ bytes }) => bytes)).toEqual(["two", "one"]);
  });

  it("accepts the largest transaction, and closes with code 5 above it", () => {
    const { client, write, meet, observed, received, connection } = established();
    write(FIRST, "x".repeat(V1_TRANSACTION_BYTES_MAX), true);
    expect(received[0]?.bytes).toHaveLength(V1_TRANSACTION_BYTES_MAX);
    client.streamSend(SECOND, Buffer.alloc(V1_TRANSACTION_BYTES_MAX), false);
    meet();
    expect(connection.over).toBe(false);
    client.streamSend(SECOND, Buffer.alloc(1), true);
    meet();
    expect(client.peerError()).toMatchObject({ isApp: true, errorCode: 5 });
    expect([observed.invalid, connection.over, received.length]).toEqual([1, true, 1]);
  });

  it("closes with code 5 on a stream without a byte", () => {
    const { client, write, observed, received } = established();
    write(FIRST, "", true);
    expect(client.peerError()).toMatchObject({ isApp: true, errorCode: 5 });
    expect([observed.invalid, received]).toEqual([1, []]);
  });

  it("leaves streams unread while the leader is stalled", () => {
    const { connection, meet, write, observed, received } = established();
    observed.stalled = true;
    write(FIRST, "one", true);
    connection.read();
    expect(received).toEqual([]);
    observed.stalled = false;
    connection.read();
    meet();
    expect(received.map(({ bytes }) => bytes)).toEqual(["one"]);
  });

  it("closes with the given code and reason, and reads nothing after", () => {
    const { connection, client, wire, meet, observed, received } = established();
    client.streamSend(FIRST, Buffer.from("late"), true);
    const late = wire.take();
    connection.close(4, "too_many");
    connection.close(1, "again");
    for (const datagram of late) connection.receive(datagram);
    connection.read();
    meet();
    expect(client.peerError()).toMatchObject({ isApp: true, errorCode: 4 });
    expect(Buffer.from(client.peerError()?.reason ?? []).toString()).toBe("too_many");
    expect([connection.over, connection.scanTimeouts(), received]).toEqual([true, -1, []]);
    expect(observed.invalid).toBe(0);
  });

  it("ends when its client closes, or presents no certificate", () => {
    const { connection, client, meet } = established();
    expect(connection.scanTimeouts()).toBeGreaterThanOrEqual(0);
    client.close(true, 0, new Uint8Array(0));
    meet();
    expect([connection.over, connection.scanTimeouts()]).toEqual([true, -1]);

    const anonymous = setup(anonymousConfig());
    anonymous.meet();
    expect([anonymous.connection.over, anonymous.observed.established]).toEqual([true, 0]);
  });

  it("ignores datagrams that are not QUIC", () => {
    const { connection, meet, write, received } = established();
    for (let size = 1; size < 64; size += 1) connection.receive(new Uint8Array(size).fill(size));
    meet();
    if (!connection.over) write(FIRST, "one", true);
    expect([connection.over, received.length]).toEqual([false, 1]);
  });
});
