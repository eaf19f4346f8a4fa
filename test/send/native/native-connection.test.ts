import { describe, expect, it } from "vitest";
import { accountNumber } from "../../../src/send/native/account-number.ts";
import {
  SHARED_TARGET_TABLE_BYTES,
  SharedTargetTable,
} from "../../../src/send/native/shared-target-table.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  DROPPED,
  IN_FLIGHT,
  QUEUED,
  SATURATED,
  STOPPED,
  TOO_LARGE,
} from "../../../src/send/transport.ts";
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

  it("is idle while nothing is queued and the leader grants a stream", async () => {
    const { native, connection } = await admitted();
    const idle = [
      [0, 5],
      [1, 5],
      [0, 0],
    ].map(([queued, streamsLeft]) => {
      Object.assign(native, { queued, streamsLeft });
      return connection.isIdle;
    });
    expect(idle).toEqual([true, false, false]);
    native.isGone = true;
    expect(connection.isIdle).toBe(false);
  });

  it("names the streams that left the queue, in the order in which they did", async () => {
    const { native, connection } = await admitted();
    native.sendResult = 1 << 16;
    const [first = 0, second = 0, third = 0] = [1, 2, 3].map(() => connection.send(BYTES));
    native.emit({ kind: "sent", tag: second }, { kind: "dropped", tag: first, reason: 3 });
    native.emit({ kind: "acked", tag: second });
    expect(connection.unqueued).toEqual([second, first]);
    expect(connection.streamResult(third)).toBe(QUEUED);
  });
});

describe("a stream result with the native engine", () => {
  it("is returned once when acknowledged or stopped by the leader, then forgotten", async () => {
    const { native, connection, hookEvents } = await admitted();
    const [first, second] = [connection.send(BYTES), connection.send(BYTES)];
    expect([connection.streamResult(first), connection.streamResult(second)]).toEqual([
      IN_FLIGHT,
      IN_FLIGHT,
    ]);
    native.emit({ kind: "acked", tag: first }, { kind: "failed", tag: second, reason: 6 });
    expect(hookEvents).toEqual(["progress"]);
    expect([connection.streamResult(first), connection.streamResult(second)]).toEqual([
      ACKED,
      STOPPED,
    ]);
    expect(connection.streamResult(first)).toBe(STOPPED);
  });

  it("has the time of the event, not that of the record", async () => {
    const { native, connection } = await admitted();
    const stream = connection.send(BYTES);
    native.emit({ kind: "acked", tag: stream });
    connection.streamResult(stream);
    expect(connection.endNs).toBe(RECORD_NS);
  });

  it("is QUEUED until the engine reports it on the wire", async () => {
    const { native, connection, hookEvents } = await admitted();
    native.sendResult = 1 << 16;
    const stream = connection.send(BYTES);
    expect(connection.streamResult(stream)).toBe(QUEUED);
    expect(connection.sentNs).toBe(0);
    native.emit({ kind: "sent", tag: stream });
    expect([connection.streamResult(stream), hookEvents]).toEqual([IN_FLIGHT, ["progress"]]);
    expect(connection.sentNs).toBe(RECORD_NS);
  });

  it("is DROPPED with the engine's reason when it expired", async () => {
    const { native, connection } = await admitted();
    native.sendResult = 1 << 16;
    const stream = connection.send(BYTES);
    native.emit({ kind: "dropped", tag: stream, reason: 3 });
    expect(connection.streamResult(stream)).toBe(DROPPED + 2);
  });

  it("stays IN_FLIGHT when the connection failed, until its end", async () => {
    const { native, connection } = await admitted();
    const stream = connection.send(BYTES);
    native.emit({ kind: "failed", tag: stream, reason: 5 });
    expect(connection.streamResult(stream)).toBe(IN_FLIGHT);
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
    expect(hookEvents).toEqual(["progress", cause]);
    expect(connection.send(BYTES)).toBe(CLOSED);
    native.emit({ kind: "closed", reason, detail });
    expect(hookEvents).toHaveLength(2);
  });

  it("comes after the results of its deliveries, though the engine reports it first", async () => {
    const { native, connection, hookEvents } = await admitted();
    const [acked, flying] = [connection.send(BYTES), connection.send(BYTES)];
    native.sendResult = 1 << 16;
    const sent = connection.send(BYTES);
    // More records than one call reads lie between.
    const others = Array.from({ length: 1_000 }, () => ({ kind: "acked", peer: 99 }) as const);
    const records = [
      ...others,
      { kind: "sent", tag: sent },
      { kind: "acked", tag: acked },
    ] as const;
    native.emit({ kind: "closed", reason: 2, detail: 4 }, ...records);
    expect(hookEvents).toEqual(["progress", { kind: "app", code: 4 }]);
    expect([acked, flying, sent].map((stream) => connection.streamResult(stream))).toEqual([
      ACKED,
      IN_FLIGHT,
      IN_FLIGHT,
    ]);
  });

  it("emits nothing when closed locally", async () => {
    const { native, connection, hookEvents } = await admitted();
    connection.close();
    connection.close();
    native.emit({ kind: "closed", reason: 1 });
    expect([native.closed, hookEvents]).toEqual([[PEER], []]);
  });
});

/** A connection that ingress threads use as well. */
async function sharedOne(queuePerLeader = 128) {
  const targetTable = new SharedTargetTable(new SharedArrayBuffer(SHARED_TARGET_TABLE_BYTES));
  const parts = await admitted(queuePerLeader, targetTable);
  const { shared } = parts.connection;
  if (shared === null) throw new Error("it is not shared");
  return { ...parts, targetTable, shared };
}

describe("a native connection shared with ingress threads", () => {
  it("is not shared where there are none", async () => {
    const { connection } = await admitted();
    expect(connection.shared).toBeNull();
  });

  it("allocates its streams from the shared count", async () => {
    const { connection, targetTable, shared } = await sharedOne();
    expect([connection.send(BYTES), targetTable.nextStream(shared.cell)]).toEqual([1, 2]);
    expect([connection.send(BYTES), shared.peer]).toEqual([3, PEER]);
  });

  it("reports an ingress thread's delivery once it is recorded, as its own", async () => {
    const { connection, shared, native, hookEvents } = await sharedOne();
    shared.recordSend(4, false);
    shared.recordSend(5, true);
    expect([connection.streamResult(4), connection.streamResult(5)]).toEqual([IN_FLIGHT, QUEUED]);
    native.emit({ kind: "acked", tag: 4 }, { kind: "sent", tag: 5 }, { kind: "dropped", tag: 6 });
    expect([connection.streamResult(4), connection.streamResult(5), hookEvents]).toEqual([
      ACKED,
      IN_FLIGHT,
      ["progress"],
    ]);
    expect(connection.sentNs).toBe(RECORD_NS);
  });

  it("has no result of a delivery that was rejected immediately", async () => {
    const { connection, native } = await sharedOne();
    native.sendResult = 0;
    expect(connection.send(BYTES)).toBe(SATURATED);
    native.emit({ kind: "dropped", tag: 1 });
    expect(connection.streamResult(1)).toBe(STOPPED);
  });
});
