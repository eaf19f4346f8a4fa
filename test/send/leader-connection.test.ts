import { describe, expect, it } from "vitest";
import type { InFlightDelivery } from "../../src/send/in-flight.ts";
import { LeaderConnection } from "../../src/send/leader-connection.ts";
import { ACKED, BLOCKED, CLOSED, DROPPED, type StreamResult } from "../../src/send/transport.ts";
import { FakeConnection } from "../support/fake-transport.ts";

const MS = 1_000_000;
const BYTES = Uint8Array.of(1, 2, 3);
const TARGET = { identity: "id", address: "10.0.0.1:8009", slot: 7 };

/** A LeaderConnection over an established engine connection, started at time 0. */
function linkWith(credit = 10) {
  const connection = new LeaderConnection(0, 8);
  const engineConnection = new FakeConnection("10.0.0.1:8009", { progress() {}, ended() {} });
  engineConnection.admit(credit);
  connection.engineConnection = engineConnection;
  return { connection, engineConnection };
}

const never = (): void => expect.unreachable();

/** Records a delivery of that packet; `sentNs` 0: it is queued in the engine. */
function add(connection: LeaderConnection, packetId: number, stream: number, sentNs: number): void {
  const delivery = { packetId, target: TARGET, stream, sentNs, endNs: 0, ageMs: 0, resend: 0 };
  connection.add(delivery, never);
}

/** Sends packets with the ids 1 to `count`; their streams count from 0. */
function sendAll(connection: LeaderConnection, count: number): void {
  for (let id = 1; id <= count; id += 1) {
    add(connection, id, connection.send(BYTES, 0), 1);
  }
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

  it("sends nothing before the handshake is done", () => {
    const { connection, engineConnection } = linkWith();
    engineConnection.established = false;
    connection.keepAlive(60_000 * MS, 1_000 * MS);
    new LeaderConnection(0, 8).keepAlive(60_000 * MS, 1_000 * MS);
    expect(engineConnection.pings).toBe(0);
  });
});

describe("in-flight deliveries of a leader connection", () => {
  it("are resolved from the oldest on, up to the first without a result", () => {
    const { connection, engineConnection } = linkWith();
    sendAll(connection, 5);
    engineConnection.ack(0);
    engineConnection.stop(1);
    engineConnection.ack(3);
    const reports: string[] = [];
    const note = ({ packetId }: InFlightDelivery, streamResult: StreamResult): void => {
      reports.push(`${packetId} ${streamResult === ACKED ? "acked" : "stopped"}`);
    };
    const onWire = (): void => expect.unreachable();
    connection.collectResults(1, onWire, note, never);
    expect(reports).toEqual(["1 acked", "2 stopped"]);
    connection.collectResults(1, onWire, note, never);
    expect(reports).toHaveLength(2);
    engineConnection.ack(2);
    connection.collectResults(1, onWire, note, never);
    expect(reports.slice(2)).toEqual(["3 acked", "4 acked"]);
    expect(connection.inFlight.size).toBe(1);
  });

  it("are all removed once when the connection failed, and finished ones keep their result", () => {
    const { connection, engineConnection } = linkWith();
    sendAll(connection, 3);
    engineConnection.ack(1);
    for (const late of [3, 4]) {
      engineConnection.delay(late);
      add(connection, late + 1, connection.send(BYTES, 0), 0);
    }
    engineConnection.sendQueued(3);
    const reports: string[] = [];
    const note =
      (what: string) =>
      ({ packetId, sentNs }: InFlightDelivery): void =>
        void reports.push(`${packetId} ${what}${sentNs > 0 ? "" : ", never sent"}`);
    for (let turn = 0; turn < 2; turn += 1) {
      connection.failAll(1, note("sent"), note("acked"), note("failed"));
    }
    const [late, last] = ["4 sent", "4 failed"];
    expect(reports).toEqual([
      "1 failed",
      "2 acked",
      "3 failed",
      late,
      last,
      "5 failed, never sent",
    ]);
  });

  it("are empty while there is no connection", () => {
    const connection = new LeaderConnection(0, 8);
    add(connection, 1, 0, 1);
    connection.collectResults(1, never, never, never);
    expect(connection.inFlight.size).toBe(1);
  });

  it("are reported on the wire once they are, though an older one has no result", () => {
    const { connection, engineConnection } = linkWith();
    sendAll(connection, 1);
    for (const stream of [1, 2, 3, 4]) {
      engineConnection.delay(stream);
      add(connection, stream + 1, connection.send(BYTES, 0), 0);
    }
    const reports: string[] = [];
    const collectResults = (nowNs: number): void =>
      connection.collectResults(
        nowNs,
        ({ packetId, sentNs }) => reports.push(`${packetId} sent ${sentNs}`),
        ({ packetId, endNs }, streamResult) => reports.push(`${packetId} ${streamResult} ${endNs}`),
        never,
      );
    engineConnection.sendQueued(1);
    collectResults(5);
    expect(reports).toEqual(["2 sent 5"]);
    engineConnection.endNs = 6;
    engineConnection.ack(2);
    engineConnection.refuse(3, 2);
    collectResults(7);
    expect(reports.slice(1)).toEqual(["3 sent 7", `3 ${ACKED} 6`, `4 ${DROPPED + 2} 6`]);
    engineConnection.endNs = 8;
    for (const stream of [0, 1]) engineConnection.ack(stream);
    engineConnection.sendQueued(4);
    collectResults(9);
    expect(reports.slice(4)).toEqual(["5 sent 9", `1 ${ACKED} 8`, `2 ${ACKED} 8`]);
  });

  it("are reported on the wire once they are, when they were queued", () => {
    const { connection, engineConnection } = linkWith();
    engineConnection.delay(0);
    engineConnection.delay(1);
    const streams = [connection.send(BYTES, 0), connection.send(BYTES, 0)];
    expect(streams.map((stream) => connection.isQueued(stream))).toEqual([true, true]);
    for (const stream of streams) add(connection, stream + 1, stream, 0);
    const reports: string[] = [];
    const collectResults = (): void =>
      connection.collectResults(
        1,
        ({ packetId }) => reports.push(`${packetId} sent`),
        ({ packetId }, streamResult) => reports.push(`${packetId} ${streamResult}`),
        never,
      );
    collectResults();
    expect(reports).toEqual([]);
    engineConnection.sendQueued(0);
    collectResults();
    expect(reports).toEqual(["1 sent"]);
    engineConnection.ack(0);
    engineConnection.refuse(1, 2);
    collectResults();
    expect(reports).toEqual(["1 sent", `2 ${DROPPED + 2}`, `1 ${ACKED}`]);
    expect(engineConnection.unqueued).toEqual([]);
  });

  it("are bounded while they are queued: the oldest is removed for a new one", () => {
    const { connection, engineConnection } = linkWith();
    const bounded = new LeaderConnection(0, 1, 2);
    bounded.engineConnection = engineConnection;
    const removed: number[] = [];
    for (let id = 1; id <= 5; id += 1) {
      const delivery = { packetId: id, target: TARGET, stream: id, sentNs: 0, endNs: 0 };
      bounded.add({ ...delivery, ageMs: 0, resend: 0 }, ({ packetId }) => removed.push(packetId));
    }
    expect([removed, bounded.queued, bounded.pending]).toEqual([[1, 2], 3, 3]);
    expect(connection.queued).toBe(0);
  });
});
