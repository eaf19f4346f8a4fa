import { describe, expect, it } from "vitest";
import { accountNumber } from "../../../src/send/native/account-number.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  DROPPED,
  ON_WIRE,
  SATURATED,
  STOPPED,
  TOO_LARGE,
} from "../../../src/send/transport.ts";
import { NO_EVENTS } from "../../support/fake-transport.ts";
import { packetOf } from "../../support/packets.ts";
import { admitted, BYTES, fixture, PEER, RECORD_NS } from "../native-fixture.ts";

describe("a connection of the native engine", () => {
  it("accepts nothing before the leader has granted a stream", async () => {
    const { native, connection, hookEvents } = await fixture();
    expect([connection.established, connection.send(BYTES)]).toEqual([false, BLOCKED]);
    native.emit({ kind: "connected" });
    expect([connection.established, connection.admitted]).toEqual([true, false]);
    expect(connection.send(BYTES)).toBe(BLOCKED);
    native.emit({ kind: "admitted", rttUs: 900 });
    expect([connection.admitted, connection.rttUs]).toEqual([true, 900]);
    expect(hookEvents).toEqual(["progress", "progress"]);
    expect(native.sent).toHaveLength(0);
  });

  it("reports whether it went through Retry", async () => {
    for (const reason of [0, 1]) {
      const { native, connection } = await fixture();
      native.emit({ kind: "connected", reason });
      expect(connection.retried).toBe(reason === 1);
    }
  });

  it("knows the leader's idle timeout", async () => {
    for (const [tag, idleTimeoutMs] of [
      [2_000, 2_000],
      [0, Number.POSITIVE_INFINITY],
    ] as const) {
      const { native, connection } = await fixture();
      expect(connection.idleTimeoutMs).toBe(Number.POSITIVE_INFINITY);
      native.emit({ kind: "connected", tag });
      expect(connection.idleTimeoutMs).toBe(idleTimeoutMs);
    }
  });

  it("reports current credit and datagrams, and nothing once it is gone", async () => {
    const { native, connection } = await admitted();
    Object.assign(native, { datagramsReceived: 12, streamsLeft: 128 });
    expect([connection.datagramsReceived, connection.streamsLeft]).toEqual([12, 128]);
    native.isGone = true;
    expect([connection.datagramsReceived, connection.streamsLeft]).toEqual([-1, -1]);
  });

  it("pings through the engine on request, and is kept alive by the engine", async () => {
    const { native, connection } = await admitted();
    expect(connection.keepsAlive).toBe(true);
    connection.ping();
    connection.close();
    connection.ping();
    expect(native.pinged).toEqual([PEER]);
  });

  it("sends a delivery with its own tag and TTL", async () => {
    const { native, connection } = await admitted();
    const streams = [connection.send(BYTES), connection.send(BYTES, 300)];
    expect(new Set(streams).size).toBe(2);
    expect(native.sent.map(({ deliveries }) => deliveries)).toEqual(
      streams.map((tag) => [PEER, tag]),
    );
    expect(native.sent[0]).toMatchObject({ bytes: BYTES, ttlMs: 800 });
    expect(native.sent[1]).toMatchObject({ bytes: BYTES, ttlMs: 300 });
  });

  it("rejects sizes that no leader accepts", async () => {
    const { native, connection } = await admitted();
    expect(connection.send(new Uint8Array(0))).toBe(TOO_LARGE);
    expect(connection.send(new Uint8Array(4097))).toBe(TOO_LARGE);
    expect(connection.send(new Uint8Array(4096))).toBeGreaterThan(0);
    expect(native.sent).toHaveLength(1);
  });

  it("rejects sizes that this leader accepts on no stream", async () => {
    const { native, connection } = await fixture();
    native.emit({ kind: "connected", detail: 1232 }, { kind: "admitted" });
    expect(connection.send(new Uint8Array(1233))).toBe(TOO_LARGE);
    expect(connection.send(new Uint8Array(1232))).toBeGreaterThan(0);
    expect(native.sent).toHaveLength(1);
  });

  it("passes on whose delivery it is and what it offers", async () => {
    const { native, connection } = await admitted();
    connection.send(BYTES, 300, { account: "an account", offeredLamports: 7_000 });
    expect(native.offers).toEqual([[accountNumber("an account"), 7_000]]);
  });

  it("is saturated when the engine takes nothing, and closed once it has ended there", async () => {
    const { native, connection } = await admitted();
    native.sendResult = 0;
    expect(connection.send(BYTES)).toBe(SATURATED);
    native.state = 4;
    expect(connection.send(BYTES)).toBe(CLOSED);
    native.isGone = true;
    expect(connection.send(BYTES)).toBe(CLOSED);
  });
});

describe("a leader without credit, with the native engine", () => {
  it("has its deliveries in the engine, however many, which orders them", async () => {
    const { native, connection } = await admitted(4);
    native.sendResult = 1 << 16;
    for (let count = 0; count < 500; count += 1) expect(connection.send(BYTES)).toBeGreaterThan(0);
    expect(native.sent).toHaveLength(500);
  });
});

describe("what became of a delivery of the native engine", () => {
  it("is passed on as it happened, and then that there was progress, once", async () => {
    const { native, connection, hookEvents } = await admitted();
    native.sendResult = 1 << 16;
    const [first = 0, second = 0] = [1, 2].map(() => connection.send(BYTES));
    native.emit(
      { kind: "sent", tag: second },
      { kind: "dropped", tag: first, reason: 3, atNs: 7 },
      { kind: "acked", tag: second, atNs: 8 },
    );
    expect(hookEvents).toEqual([
      [second, ON_WIRE, RECORD_NS],
      [first, DROPPED + 2, 7],
      [second, ACKED, 8],
      "progress",
    ]);
  });

  it("is that it waits where the engine has not put it on the wire", async () => {
    const { native, connection } = await admitted();
    connection.send(BYTES);
    expect(connection.waits).toBe(false);
    native.sendResult = 1 << 16;
    connection.send(BYTES);
    expect(connection.waits).toBe(true);
  });

  it("is STOPPED when the leader stopped it, and nothing when the connection failed", async () => {
    const { native, connection, hookEvents } = await admitted();
    const [stopped, lost] = [connection.send(BYTES), connection.send(BYTES)];
    native.emit(
      { kind: "failed", tag: stopped, reason: 6 },
      { kind: "failed", tag: lost, reason: 5 },
    );
    expect(hookEvents).toEqual([[stopped, STOPPED, RECORD_NS], "progress"]);
  });
});

describe("the end of a native connection", () => {
  it.each([
    ["the leader's code", 2, 4, { kind: "app", code: 4 }],
    ["a transport code", 3, 2, { kind: "transport", code: 2 }],
    ["silence", 5, 0, { kind: "silence", code: 0 }],
    ["a leader that has forgotten it", 6, 0, { kind: "silence", code: 0 }],
    ["a leader that speaks no version of ours", 7, 0, { kind: "local", code: 0 }],
    ["a handshake that took too long", 8, 0, { kind: "silence", code: 0 }],
    ["our own bug", 9, 0, { kind: "local", code: 0 }],
  ])("is reported as %s, after the records before it", async (_, reason, detail, cause) => {
    const { native, connection, hookEvents } = await admitted();
    const stream = connection.send(BYTES);
    native.emit({ kind: "acked", tag: stream }, { kind: "closed", reason, detail });
    expect(hookEvents).toEqual([[stream, ACKED, RECORD_NS], "progress", cause]);
    expect(connection.send(BYTES)).toBe(CLOSED);
    native.emit({ kind: "closed", reason, detail });
    expect(hookEvents).toHaveLength(3);
  });

  it("comes after the results of its deliveries, however many events lie between", async () => {
    const { native, connection, hookEvents } = await admitted();
    const acked = connection.send(BYTES);
    // More than one call reads.
    const others = Array.from({ length: 2_000 }, () => ({ kind: "acked", peer: 99 }) as const);
    native.emit({ kind: "acked", tag: acked }, ...others, { kind: "closed", reason: 2, detail: 4 });
    expect(hookEvents).toEqual([[acked, ACKED, RECORD_NS], "progress", { kind: "app", code: 4 }]);
  });

  it("emits nothing when closed locally", async () => {
    const { native, connection, hookEvents } = await admitted();
    const stream = connection.send(BYTES);
    connection.close();
    connection.close();
    native.emit({ kind: "acked", tag: stream }, { kind: "closed", reason: 1 });
    expect([native.closed, hookEvents]).toEqual([[PEER], []]);
  });
});

describe("a native connection over which ingress threads send", () => {
  it("is found by its handle until its end, and passes on what they sent", async () => {
    const { native, transport, elsewhere } = await admitted();
    const packet = packetOf(9, BYTES);
    transport.recordSend?.(PEER, packet, 2 ** 24, 77, true);
    transport.recordSend?.(PEER + 1, packet, 2 ** 24, 77, true);
    native.emit({ kind: "closed", reason: 1 });
    transport.recordSend?.(PEER, packet, 2 ** 24 + 1, 78, false);
    expect(elsewhere).toEqual([[9, 2 ** 24, 77, true]]);
  });

  it("numbers its own deliveries apart from theirs, over all connections", async () => {
    const { native, transport, connection } = await admitted();
    native.openResponse = PEER + 1;
    const other = transport.connect("127.0.0.2:8009", NO_EVENTS);
    native.emit(
      { kind: "admitted", peer: PEER + 1 },
      { kind: "connected", peer: PEER + 1, detail: 9 },
    );
    expect([connection, other, connection].map((it) => it?.send(BYTES))).toEqual([1, 2, 3]);
  });
});
