import { describe, expect, it } from "vitest";
import { LeaderConnection } from "../../src/send/leader-connection.ts";
import { BLOCKED, CLOSED } from "../../src/send/transport.ts";
import { FakeConnection, NO_EVENTS } from "../support/fake-transport.ts";

const MS = 1_000_000;
const BYTES = Uint8Array.of(1, 2, 3);

/** A LeaderConnection over an established engine connection, started at time 0. */
function linkWith(credit = 10) {
  const connection = new LeaderConnection(0, 8);
  const engineConnection = new FakeConnection("10.0.0.1:8009", NO_EVENTS);
  engineConnection.admit(credit);
  connection.engineConnection = engineConnection;
  return { connection, engineConnection };
}

describe("send of a leader connection", () => {
  it("returns what its engine connection returns", () => {
    const { connection, engineConnection } = linkWith(1);
    expect([connection.send(BYTES, 0), connection.send(BYTES, 0)]).toEqual([0, BLOCKED]);
    expect(engineConnection.sent).toEqual([BYTES]);
  });

  it("accepts nothing before there is a connection, nor after it is over", () => {
    const { connection, engineConnection } = linkWith();
    connection.over = true;
    expect(connection.send(BYTES, 0)).toBe(CLOSED);
    expect(new LeaderConnection(0, 8).send(BYTES, 0)).toBe(CLOSED);
    expect(engineConnection.sent).toEqual([]);
  });
});

describe("keep-alive of a leader connection", () => {
  it("pings once per period of silence", () => {
    const { connection, engineConnection } = linkWith();
    for (let ms = 0; ms <= 3_000; ms += 100) connection.keepAlive(ms * MS, 1_000 * MS);
    expect(engineConnection.pings).toBe(3);
  });

  it("is deferred by sent deliveries, not by blocked ones", () => {
    const { connection, engineConnection } = linkWith(1);
    connection.send(BYTES, 900 * MS);
    connection.keepAlive(1_800 * MS, 1_000 * MS);
    expect(engineConnection.pings).toBe(0);
    connection.send(BYTES, 1_800 * MS);
    connection.keepAlive(1_900 * MS, 1_000 * MS);
    expect(engineConnection.pings).toBe(1);
  });

  it.each([true, false])("pings in time for a short idle timeout (engine pings: %s)", (alive) => {
    const pingsFor = (idleTimeoutMs: number): number => {
      const { connection, engineConnection } = linkWith();
      Object.assign(engineConnection, { idleTimeoutMs, keepsAlive: alive });
      for (let ms = 0; ms <= 12_000; ms += 100) {
        const dueMs = connection.nextPingMs(ms * MS, 4_000 * MS);
        const before = engineConnection.pings;
        connection.keepAlive(ms * MS, 4_000 * MS);
        expect(engineConnection.pings > before).toBe(dueMs <= 0);
      }
      return engineConnection.pings;
    };
    // Two within the leader's idle timeout; but no leader makes this edge ping all the time.
    expect(pingsFor(2_000)).toBe(15);
    expect(pingsFor(1)).toBe(30);
    const usual = alive ? 0 : 3;
    expect([pingsFor(10_000), pingsFor(Number.POSITIVE_INFINITY)]).toEqual([usual, usual]);
  });

  it("sends nothing before the handshake is done", () => {
    const { connection, engineConnection } = linkWith();
    engineConnection.established = false;
    connection.keepAlive(60_000 * MS, 1_000 * MS);
    new LeaderConnection(0, 8).keepAlive(60_000 * MS, 1_000 * MS);
    expect(engineConnection.pings).toBe(0);
  });
});

it("counts the deliveries that have no result, on the wire or not", () => {
  const connection = new LeaderConnection(0, 8);
  const target = { identity: "id", address: "10.0.0.1:8009", slot: 7 };
  for (const sentNs of [0, 5]) {
    connection.deliveries.add(sentNs, 1, target, sentNs, 0, 0, () => expect.unreachable());
  }
  expect(connection.pending).toBe(2);
});
