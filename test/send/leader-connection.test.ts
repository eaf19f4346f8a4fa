import { describe, expect, it } from "vitest";
import { type Delivery, LeaderConnection } from "../../src/send/leader-connection.ts";
import { BLOCKED, CLOSED } from "../../src/send/transport.ts";
import { FakeConnection, NO_EVENTS } from "../support/fake-transport.ts";

const MS = 1_000_000;
const BYTES = Uint8Array.of(1, 2, 3);
const TARGET = { identity: "id", address: "10.0.0.1:8009", slot: 7 };

/** A LeaderConnection over an established engine connection, started at time 0. */
function linkWith(credit = 10) {
  const connection = new LeaderConnection(0, 8);
  const engineConnection = new FakeConnection("10.0.0.1:8009", NO_EVENTS);
  engineConnection.admit(credit);
  connection.engineConnection = engineConnection;
  return { connection, engineConnection };
}

const never = (): void => expect.unreachable();

/** Adds a delivery of that packet; `sentNs` 0: it waits in the engine. */
function add(
  connection: LeaderConnection,
  packetId: number,
  sentNs: number,
  overflowed: (delivery: Delivery) => void = never,
): void {
  connection.add(packetId + 100, packetId, TARGET, sentNs, 0, 0, overflowed);
}

const failedOf = (connection: LeaderConnection): string[] => {
  const failed: string[] = [];
  connection.failAll(({ packetId, sentNs }) => failed.push(`${packetId} ${sentNs}`));
  return failed;
};

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

  it("sends nothing before the handshake is done", () => {
    const { connection, engineConnection } = linkWith();
    engineConnection.established = false;
    connection.keepAlive(60_000 * MS, 1_000 * MS);
    new LeaderConnection(0, 8).keepAlive(60_000 * MS, 1_000 * MS);
    expect(engineConnection.pings).toBe(0);
  });
});

describe("deliveries of a leader connection", () => {
  it("are found by their number until they have a result", () => {
    const connection = new LeaderConnection(0, 8);
    add(connection, 1, 5);
    add(connection, 2, 0);
    expect([connection.inFlight, connection.queued, connection.pending]).toEqual([1, 1, 2]);
    const [first, second] = [connection.find(101), connection.find(102)];
    expect(first).toMatchObject({ packetId: 1, sentNs: 5, target: TARGET });
    expect(second).toMatchObject({ packetId: 2, sentNs: 0 });
    for (const delivery of [first, second]) if (delivery !== null) connection.remove(delivery);
    expect([connection.find(101), connection.find(102), connection.pending]).toEqual([
      null,
      null,
      0,
    ]);
  });

  it("are on the wire once they are put there, after those that were before", () => {
    const connection = new LeaderConnection(0, 8);
    for (const id of [1, 2, 3]) add(connection, id, id === 3 ? 4 : 0);
    const second = connection.find(102);
    if (second !== null) connection.putOnWire(second, 9, never);
    expect([connection.inFlight, connection.queued]).toEqual([2, 1]);
    expect(failedOf(connection)).toEqual(["3 4", "2 9", "1 0"]);
    expect([failedOf(connection), connection.pending]).toEqual([[], 0]);
  });

  it("are bounded, on the wire and while they wait: the oldest makes room", () => {
    const connection = new LeaderConnection(0, 1, 2);
    const removed: string[] = [];
    const note = ({ packetId, sentNs }: Delivery): void =>
      void removed.push(`${packetId} ${sentNs}`);
    for (let id = 1; id <= 5; id += 1) add(connection, id, 0, note);
    expect([removed, connection.queued]).toEqual([["1 0", "2 0"], 3]);
    for (const id of [6, 7]) add(connection, id, id, note);
    const third = connection.find(103);
    if (third !== null) connection.putOnWire(third, 8, note);
    expect(removed.slice(2)).toEqual(["6 6", "7 7"]);
    expect([connection.inFlight, connection.queued]).toEqual([1, 2]);
  });

  it("do not change when another has taken the row of one that is gone", () => {
    const connection = new LeaderConnection(0, 8);
    add(connection, 1, 5);
    add(connection, 2, 6);
    const first = connection.find(101);
    if (first !== null) connection.remove(first);
    add(connection, 3, 7);
    expect(failedOf(connection)).toEqual(["2 6", "3 7"]);
  });
});
