import { constants } from "node:os";
import { describe, expect, it } from "vitest";
import type { NativeSending } from "../../src/native/contract.ts";
import { identityOfSeed } from "../../src/send/identity.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  DROPPED,
  type Ending,
  FLYING,
  STOPPED,
  TOO_LARGE,
  WAITING,
} from "../../src/send/transport.ts";
import { createNativeTransport } from "../../src/send/transport-native.ts";

const BYTES = Uint8Array.of(1, 2, 3);
const PEER = 7;
const ENGINE = 3;
/** When every record happened. */
const RECORD_NS = 5;

/** Kinds of records, as `native/src/send/outcomes.rs` numbers them. */
const KIND = { sent: 1, acked: 2, failed: 3, dropped: 4, connected: 5, admitted: 6, closed: 7 };

interface News {
  readonly kind: keyof typeof KIND;
  readonly tag?: number;
  readonly reason?: number;
  readonly rttUs?: number;
  readonly detail?: number;
  readonly peer?: number;
}

/** An addon that records what it is asked, answers as told, and tells what the test says. */
class FakeNative implements NativeSending {
  startAnswer = ENGINE;
  openAnswer = PEER;
  sendAnswer = 1;
  readonly sent: { readonly copies: number[]; readonly bytes: Uint8Array; ttlMs: number }[] = [];
  readonly closed: number[] = [];
  stops = 0;
  #records: News[] = [];
  #wake: () => void = () => {};

  contractVersion(): number {
    return 3;
  }
  engineStart(_: unknown, wake: () => void): number {
    this.#wake = wake;
    return this.startAnswer;
  }
  engineStop(): number {
    this.stops += 1;
    return 0;
  }
  engineCounters(): number {
    return 0;
  }
  identitySet(): number {
    return 0;
  }
  peerOpen(): number {
    return this.openAnswer;
  }
  peerClose(_: number, peer: number): number {
    this.closed.push(peer);
    return 0;
  }
  readonly pinged: number[] = [];
  peerPing(_: number, peer: number): number {
    this.pinged.push(peer);
    return 0;
  }
  queued = 0;
  heard = 0;
  streamsLeft = 0;
  /** As the engine does for a connection that is gone. */
  isGone = false;
  peerFigures(_: number, __: number, out: Float64Array): number {
    if (this.isGone) return 0;
    out.set([3, 0, this.queued, 0, 0, 0, 0, 0, this.heard, this.streamsLeft]);
    return 10;
  }
  txSend(_: number, copies: Uint32Array, bytes: Uint8Array, __: number, ttlMs: number): number {
    this.sent.push({ copies: [...copies], bytes: Uint8Array.from(bytes), ttlMs });
    return this.sendAnswer;
  }
  outcomesDrain(_: number, out: Float64Array): number {
    const batch = this.#records.splice(0, Math.floor(out.length / 8));
    for (const [index, news] of batch.entries()) {
      const { kind, tag = 0, reason = 0, rttUs = 0, detail = 0, peer = PEER } = news;
      out.set([KIND[kind], tag, peer, tag, reason, RECORD_NS, rttUs, detail], index * 8);
    }
    return batch.length;
  }

  tell(...news: News[]): void {
    this.#records.push(...news);
    this.#wake();
  }
}

async function scene(queuePerPeer = 128) {
  const native = new FakeNative();
  const transport = createNativeTransport(
    {
      native,
      identity: identityOfSeed(new Uint8Array(32).fill(5)),
      log: { info() {}, warn() {}, error() {} },
    },
    {
      binds: ["127.0.0.1:0"],
      busyPollUs: 0,
      idleTimeoutMs: 10_000,
      keepAliveMs: 1_000,
      admissionTimeoutMs: 5_000,
      queuePerPeer,
      copyTtlMs: 800,
    },
  );
  await transport.start();
  const told: (Ending | "progress")[] = [];
  const connection = transport.connect("127.0.0.1:8009", {
    progress: () => told.push("progress"),
    ended: (ending) => told.push(ending),
  });
  if (connection === null) throw new Error("no connection");
  return { native, transport, connection, told };
}

async function admitted(queuePerPeer?: number) {
  const parts = await scene(queuePerPeer);
  parts.native.tell({ kind: "connected", detail: 4096 }, { kind: "admitted", rttUs: 900 });
  parts.told.length = 0;
  return parts;
}

describe("a connection of the native engine", () => {
  it("takes nothing before the leader has granted a stream", async () => {
    const { native, connection, told } = await scene();
    expect([connection.established, connection.send(BYTES)]).toEqual([false, BLOCKED]);
    native.tell({ kind: "connected" });
    expect([connection.established, connection.admitted]).toEqual([true, false]);
    expect(connection.send(BYTES)).toBe(BLOCKED);
    native.tell({ kind: "admitted", rttUs: 900 });
    expect([connection.admitted, connection.rttUs]).toEqual([true, 900]);
    expect(told).toEqual(["progress", "progress"]);
    expect(native.sent).toHaveLength(0);
  });

  it("tells whether it went through Retry", async () => {
    for (const reason of [0, 1]) {
      const { native, connection } = await scene();
      native.tell({ kind: "connected", reason });
      expect(connection.retried).toBe(reason === 1);
    }
  });

  it("tells what is granted and heard now, and nothing of what is gone", async () => {
    const { native, connection } = await admitted();
    Object.assign(native, { heard: 12, streamsLeft: 128 });
    expect([connection.heard, connection.streamsLeft]).toEqual([12, 128]);
    native.isGone = true;
    expect([connection.heard, connection.streamsLeft]).toEqual([-1, -1]);
  });

  it("is asked for an answer when somebody wants one, and keeps itself alive", async () => {
    const { native, connection } = await admitted();
    expect(connection.keepsAlive).toBe(true);
    connection.ping();
    connection.close();
    connection.ping();
    expect(native.pinged).toEqual([PEER]);
  });

  it("hands a copy to its peer with a tag of its own and the time it may wait", async () => {
    const { native, connection } = await admitted();
    const streams = [connection.send(BYTES), connection.send(BYTES, 300)];
    expect(new Set(streams).size).toBe(2);
    expect(native.sent.map(({ copies }) => copies)).toEqual(streams.map((tag) => [PEER, tag]));
    expect(native.sent[0]).toMatchObject({ bytes: BYTES, ttlMs: 800 });
    expect(native.sent[1]).toMatchObject({ bytes: BYTES, ttlMs: 300 });
  });

  it("refuses by itself what no leader takes", async () => {
    const { native, connection } = await admitted();
    expect(connection.send(new Uint8Array(0))).toBe(TOO_LARGE);
    expect(connection.send(new Uint8Array(4097))).toBe(TOO_LARGE);
    expect(connection.send(new Uint8Array(4096))).toBeGreaterThan(0);
    expect(native.sent).toHaveLength(1);
  });

  it("refuses what this leader takes on no stream", async () => {
    const { native, connection } = await scene();
    native.tell({ kind: "connected", detail: 1232 }, { kind: "admitted" });
    expect(connection.send(new Uint8Array(1233))).toBe(TOO_LARGE);
    expect(connection.send(new Uint8Array(1232))).toBeGreaterThan(0);
    expect(native.sent).toHaveLength(1);
  });

  it("is blocked when the engine takes nothing", async () => {
    const { native, connection } = await admitted();
    native.sendAnswer = 0;
    expect(connection.send(BYTES)).toBe(BLOCKED);
  });
});

describe("a leader without credit, with the native engine", () => {
  it("has few copies with the engine, so that what comes later can go first", async () => {
    const { native, connection } = await admitted();
    native.sendAnswer = 1 << 16;
    const streams = Array.from({ length: 32 }, () => connection.send(BYTES));
    native.queued = 32;
    expect(connection.send(BYTES)).toBe(BLOCKED);
    expect(native.sent).toHaveLength(32);
    native.tell({ kind: "sent", tag: streams[0] ?? 0 });
    expect(connection.send(BYTES)).toBeGreaterThan(0);
  });

  it("is not offered more than the engine may keep, again and again", async () => {
    const { native, connection } = await admitted(4);
    native.sendAnswer = 1 << 16;
    for (let count = 0; count < 4; count += 1) expect(connection.send(BYTES)).toBeGreaterThan(0);
    native.queued = 4;
    expect(connection.send(BYTES)).toBe(BLOCKED);
    expect(native.sent).toHaveLength(4);
  });

  it("is taken for free again when the engine has nothing, whatever news was lost", async () => {
    const { native, connection } = await admitted();
    native.sendAnswer = 1 << 16;
    for (let count = 0; count < 32; count += 1) connection.send(BYTES);
    native.queued = 0;
    expect(connection.send(BYTES)).toBeGreaterThan(0);
  });
});

describe("a copy's fate with the native engine", () => {
  it("is told once it is acknowledged or refused by the leader, then forgotten", async () => {
    const { native, connection, told } = await admitted();
    const [first, second] = [connection.send(BYTES), connection.send(BYTES)];
    expect([connection.fate(first), connection.fate(second)]).toEqual([FLYING, FLYING]);
    native.tell({ kind: "acked", tag: first }, { kind: "failed", tag: second, reason: 6 });
    expect(told).toEqual(["progress"]);
    expect([connection.fate(first), connection.fate(second)]).toEqual([ACKED, STOPPED]);
    expect(connection.fate(first)).toBe(STOPPED);
  });

  it("comes with the moment at which it happened, not that of the news", async () => {
    const { native, connection } = await admitted();
    const stream = connection.send(BYTES);
    native.tell({ kind: "acked", tag: stream });
    connection.fate(stream);
    expect(connection.endNs).toBe(RECORD_NS);
  });

  it("is to wait until the engine says that it is on the wire", async () => {
    const { native, connection, told } = await admitted();
    native.sendAnswer = 1 << 16;
    const stream = connection.send(BYTES);
    expect(connection.fate(stream)).toBe(WAITING);
    expect(connection.sentNs).toBe(0);
    native.tell({ kind: "sent", tag: stream });
    expect([connection.fate(stream), told]).toEqual([FLYING, ["progress"]]);
    expect(connection.sentNs).toBe(RECORD_NS);
  });

  it("is to be dropped with the engine's reason when it waited in vain", async () => {
    const { native, connection } = await admitted();
    native.sendAnswer = 1 << 16;
    const stream = connection.send(BYTES);
    native.tell({ kind: "dropped", tag: stream, reason: 3 });
    expect(connection.fate(stream)).toBe(DROPPED + 2);
  });

  it("stays open when the connection is what failed, for its end to settle", async () => {
    const { native, connection } = await admitted();
    const stream = connection.send(BYTES);
    native.tell({ kind: "failed", tag: stream, reason: 5 });
    expect(connection.fate(stream)).toBe(FLYING);
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
  ])("is told as %s, after the news before it", async (_, reason, detail, ending) => {
    const { native, connection, told } = await admitted();
    const stream = connection.send(BYTES);
    native.tell({ kind: "acked", tag: stream }, { kind: "closed", reason, detail });
    expect(told).toEqual(["progress", ending]);
    expect(connection.send(BYTES)).toBe(CLOSED);
    native.tell({ kind: "closed", reason, detail });
    expect(told).toHaveLength(2);
  });

  it("comes after what its copies came to, though the engine tells of it first", async () => {
    const { native, connection, told } = await admitted();
    const [acked, flying] = [connection.send(BYTES), connection.send(BYTES)];
    native.sendAnswer = 1 << 16;
    const sent = connection.send(BYTES);
    // More than one call takes lies between.
    const others = Array.from({ length: 1_000 }, () => ({ kind: "acked", peer: 99 }) as const);
    const records = [
      ...others,
      { kind: "sent", tag: sent },
      { kind: "acked", tag: acked },
    ] as const;
    native.tell({ kind: "closed", reason: 2, detail: 4 }, ...records);
    expect(told).toEqual(["progress", { kind: "app", code: 4 }]);
    expect([acked, flying, sent].map((stream) => connection.fate(stream))).toEqual([
      ACKED,
      FLYING,
      FLYING,
    ]);
  });

  it("is silent when this side closed it", async () => {
    const { native, connection, told } = await admitted();
    connection.close();
    connection.close();
    native.tell({ kind: "closed", reason: 1 });
    expect([native.closed, told]).toEqual([[PEER], []]);
  });
});

describe("the native transport", () => {
  it("drains batches larger than one call takes, and ignores peers it does not know", async () => {
    const { native, transport, connection } = await admitted();
    const strangers = Array.from({ length: 1_000 }, () => ({ kind: "acked", peer: 99 }) as const);
    const stream = connection.send(BYTES);
    native.tell(...strangers, { kind: "acked", tag: stream });
    expect(connection.fate(stream)).toBe(ACKED);
    expect(transport.counters["recordsDrained"]).toBe(1_003);
  });

  it("says with a null that an address is none, and counts it", async () => {
    const { native, transport } = await scene();
    native.openAnswer = -20;
    expect(transport.connect("nowhere", { progress() {}, ended() {} })).toBeNull();
    expect(transport.counters["connectErrors"]).toBe(1);
  });

  it("refuses to start when the engine does, and stops once", async () => {
    const { native, transport } = await scene();
    await transport.stop();
    await transport.stop();
    expect(native.stops).toBe(1);
    native.startAnswer = -1000 - constants.errno.EADDRINUSE;
    await expect(transport.start()).rejects.toThrow("EADDRINUSE");
    native.startAnswer = -13;
    await expect(transport.start()).rejects.toThrow("certificate");
    native.startAnswer = -99;
    await expect(transport.start()).rejects.toThrow("-99");
  });
});
