import { describe, expect, it } from "vitest";
import type { FlyingCopy } from "../../src/send/in-flight.ts";
import { Link } from "../../src/send/leader-connection.ts";
import { ACKED, BLOCKED, CLOSED, DROPPED, type Fate } from "../../src/send/transport.ts";
import { FakeConnection } from "../support/fake-transport.ts";

const MS = 1_000_000;
const BYTES = Uint8Array.of(1, 2, 3);
const TARGET = { identity: "id", address: "10.0.0.1:8009", slot: 7 };

/** A link over an established connection, begun at time 0. */
function linkWith(credit = 10) {
  const link = new Link(0, 8);
  const connection = new FakeConnection("10.0.0.1:8009", { progress() {}, ended() {} });
  connection.admit(credit);
  link.connection = connection;
  return { link, connection };
}

/** Sends packets with the ids 1 to `count`; their streams are 0 and on. */
function sendAll(link: Link, count: number): void {
  for (let id = 1; id <= count; id += 1) {
    link.inFlight.push(id, TARGET, link.send(BYTES, 0), 1, 0, 0);
  }
}

describe("a link's send", () => {
  it("answers what its connection answers", () => {
    const { link, connection } = linkWith(1);
    expect([link.send(BYTES, 0), link.send(BYTES, 0)]).toEqual([0, BLOCKED]);
    expect(connection.sent).toEqual([BYTES]);
  });

  it("takes nothing before there is a connection, nor after it is over", () => {
    const { link, connection } = linkWith();
    link.over = true;
    expect(link.send(BYTES, 0)).toBe(CLOSED);
    expect(new Link(0, 8).send(BYTES, 0)).toBe(CLOSED);
    expect(connection.sent).toEqual([]);
  });
});

describe("a link's keep-alive", () => {
  it("pings once for each period without a word", () => {
    const { link, connection } = linkWith();
    for (let ms = 0; ms <= 3_000; ms += 100) link.keepAlive(ms * MS, 1_000 * MS);
    expect(connection.pings).toBe(3);
  });

  it("is put off by what was sent, not by what was blocked", () => {
    const { link, connection } = linkWith(1);
    link.send(BYTES, 900 * MS);
    link.keepAlive(1_800 * MS, 1_000 * MS);
    expect(connection.pings).toBe(0);
    link.send(BYTES, 1_800 * MS);
    link.keepAlive(1_900 * MS, 1_000 * MS);
    expect(connection.pings).toBe(1);
  });

  it("says nothing before the handshake is done", () => {
    const { link, connection } = linkWith();
    connection.established = false;
    link.keepAlive(60_000 * MS, 1_000 * MS);
    new Link(0, 8).keepAlive(60_000 * MS, 1_000 * MS);
    expect(connection.pings).toBe(0);
  });
});

describe("a link's copies in flight", () => {
  it("are settled from the oldest on, up to the first that still flies", () => {
    const { link, connection } = linkWith();
    sendAll(link, 5);
    connection.ack(0);
    connection.stop(1);
    connection.ack(3);
    const told: string[] = [];
    const note = ({ packetId }: FlyingCopy, fate: Fate): void => {
      told.push(`${packetId} ${fate === ACKED ? "acked" : "stopped"}`);
    };
    const onWire = (): void => expect.unreachable();
    link.settle(1, onWire, note);
    expect(told).toEqual(["1 acked", "2 stopped"]);
    link.settle(1, onWire, note);
    expect(told).toHaveLength(2);
    connection.ack(2);
    link.settle(1, onWire, note);
    expect(told.slice(2)).toEqual(["3 acked", "4 acked"]);
    expect(link.inFlight.size).toBe(1);
  });

  it("are all taken when the connection failed, once, and what had an end keeps it", () => {
    const { link, connection } = linkWith();
    sendAll(link, 3);
    connection.ack(1);
    for (const late of [3, 4]) {
      connection.delay(late);
      link.inFlight.push(late + 1, TARGET, link.send(BYTES, 0), 0, 0, 0);
    }
    connection.fly(3);
    const told: string[] = [];
    const note =
      (what: string) =>
      ({ packetId, sentNs }: FlyingCopy): void =>
        void told.push(`${packetId} ${what}${sentNs > 0 ? "" : ", never sent"}`);
    for (let turn = 0; turn < 2; turn += 1) {
      link.failAll(1, note("sent"), note("acked"), note("failed"));
    }
    const [late, last] = ["4 sent", "4 failed"];
    expect(told).toEqual(["1 failed", "2 acked", "3 failed", late, last, "5 failed, never sent"]);
  });

  it("are none while there is no connection", () => {
    const link = new Link(0, 8);
    link.inFlight.push(1, TARGET, 0, 1, 0, 0);
    const never = (): void => expect.unreachable();
    link.settle(1, never, never);
    expect(link.inFlight.size).toBe(1);
  });

  it("are told of as on the wire once they are, though an older one has no end", () => {
    const { link, connection } = linkWith();
    sendAll(link, 1);
    for (const stream of [1, 2, 3, 4]) {
      connection.delay(stream);
      link.inFlight.push(stream + 1, TARGET, link.send(BYTES, 0), 0, 0, 0);
    }
    const told: string[] = [];
    const settle = (nowNs: number): void =>
      link.settle(
        nowNs,
        ({ packetId, sentNs }) => told.push(`${packetId} sent ${sentNs}`),
        ({ packetId, endNs }, fate) => told.push(`${packetId} ${fate} ${endNs}`),
      );
    connection.fly(1);
    settle(5);
    expect(told).toEqual(["2 sent 5"]);
    connection.endNs = 6;
    connection.ack(2);
    connection.refuse(3, 2);
    settle(7);
    expect(told.slice(1)).toEqual(["3 sent 7"]);
    connection.endNs = 8;
    for (const stream of [0, 1]) connection.ack(stream);
    connection.fly(4);
    settle(9);
    const ends = [`1 ${ACKED} 8`, `2 ${ACKED} 8`, `3 ${ACKED} 6`, `4 ${DROPPED + 2} 6`];
    expect(told.slice(2)).toEqual([...ends, "5 sent 9"]);
  });

  it("are told of as on the wire once they are, when they had to wait", () => {
    const { link, connection } = linkWith();
    connection.delay(0);
    connection.delay(1);
    const streams = [link.send(BYTES, 0), link.send(BYTES, 0)];
    expect(streams.map((stream) => link.waits(stream))).toEqual([true, true]);
    for (const stream of streams) link.inFlight.push(stream + 1, TARGET, stream, 0, 0, 0);
    const told: string[] = [];
    const settle = (): void =>
      link.settle(
        1,
        ({ packetId }) => told.push(`${packetId} sent`),
        ({ packetId }, fate) => told.push(`${packetId} ${fate}`),
      );
    settle();
    expect(told).toEqual([]);
    connection.fly(0);
    settle();
    expect(told).toEqual(["1 sent"]);
    connection.ack(0);
    connection.refuse(1, 2);
    settle();
    expect(told).toEqual(["1 sent", `1 ${ACKED}`, `2 ${DROPPED + 2}`]);
  });
});
