import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../../src/core/clock.ts";
import { LEADER_SAYS_BYTES_MAX } from "../../../src/send/limits.ts";
import { QuicConnection } from "../../../src/send/portable/quic-connection.ts";
import { type QuicheConnection, quiche } from "../../../src/send/portable/quiche.ts";
import {
  ACKED,
  BLOCKED,
  CLOSED,
  type CloseCause,
  STOPPED,
  TOO_LARGE,
} from "../../../src/send/transport.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import {
  CLIENT,
  clientConfig,
  endOf,
  exchange,
  LEADER,
  memorySocket,
  newClient,
  newServer,
} from "../../support/quic-memory.ts";
import { stub } from "../../support/stub.ts";

const ADDRESS = { family: 4, ...LEADER } as const;
const BYTES = Buffer.from("a transaction");
const SILENCE_MS = 10_000;

/** A connection over this quiche connection, with a record of its events. */
function connectionOver(raw: QuicheConnection, onResult = (): void => {}) {
  const results: [stream: number, result: number][] = [];
  const { socket, take } = memorySocket(CLIENT);
  const calls = { progress: 0, touched: 0, gone: 0 };
  const clock = createFakeClock();
  const pendingCloses: CloseCause[] = [];
  const connection = new QuicConnection(
    7,
    raw,
    ADDRESS,
    socket,
    {
      progress: () => {
        calls.progress += 1;
      },
      result: (stream, result) => {
        results.push([stream, result]);
        onResult();
      },
      sentElsewhere() {},
      ended: (cause) => void pendingCloses.push(cause),
    },
    {
      nowNs: () => clock.nowNs(),
      touched: () => void calls.touched++,
      gone: () => void calls.gone++,
    },
    SILENCE_MS * NS_PER_MS,
  );
  return { connection, take, calls, results, pendingCloses, clock };
}

/** A connection and a bare leader side, connected by hand. */
function setup({ streams = 128, streamBytes = 4096, resetToken = 1n } = {}) {
  const raw = newClient(clientConfig());
  const fixture = connectionOver(raw);
  const { connection, take } = fixture;
  const server = newServer(streams, streamBytes, resetToken);
  const wire = endOf(server, LEADER);
  const own = { take, receive: (bytes: Uint8Array) => connection.receive(bytes) };
  const meet = (): void => exchange(own, wire);
  return { ...fixture, server, wire, meet, theirId: () => raw.sourceId() };
}

function established(options: Parameters<typeof setup>[0] = {}) {
  const fixture = setup(options);
  fixture.connection.open();
  fixture.meet();
  expect([fixture.connection.established, fixture.connection.admitted]).toEqual([true, true]);
  return fixture;
}

/** Reads a stream on the leader's side to its end: its bytes, and whether it ended. */
function readAll(server: QuicheConnection, stream: number): { bytes: string; ended: boolean } {
  const chunk = new Uint8Array(8192);
  const [size, ended] = server.streamRecv(stream, chunk) ?? [0, false];
  return { bytes: Buffer.from(chunk.subarray(0, size)).toString(), ended };
}

const broken = (): never => {
  throw new Error("the binding's error");
};

const noStreams = stub<ReturnType<QuicheConnection["writable"]>>({
  [Symbol.iterator]: () => [][Symbol.iterator](),
});

/** A connection after its handshake over a binding that the test controls. */
function stubbed(changes: Partial<QuicheConnection>, onProgress?: () => void, firstStreams = 1) {
  let streams = firstStreams;
  const closes: (readonly [boolean, number])[] = [];
  const raw = stub<QuicheConnection>({
    recv: (bytes) => bytes.length,
    isDraining: () => false,
    isClosed: () => false,
    isEstablished: () => true,
    stats: () =>
      stub<ReturnType<QuicheConnection["stats"]>>({
        peerInitialMaxStreamDataUni: 100,
        peerMaxIdleTimeout: 0,
      }),
    pathStats: () => [],
    peerStreamsLeftUni: () => streams,
    streamPriority: () => {},
    streamCapacity: () => 1_000,
    streamSend: (_stream, bytes) => bytes.length,
    streamFinished: () => false,
    timeout: () => null,
    sendAckEliciting: () => {},
    send: () => null,
    close: (app, code) => void closes.push([app, code]),
  });
  const fixture = connectionOver(raw, onProgress);
  fixture.connection.receive(BYTES);
  expect(fixture.connection.admitted).toBe(firstStreams > 0);
  streams = 1;
  Object.assign(raw, changes);
  return { ...fixture, closes };
}

describe("a connection's handshake", () => {
  it("begins with the first datagram when it is opened, and accepts nothing before its end", () => {
    const { connection, take, meet, calls } = setup();
    expect(take()).toEqual([]);
    connection.open();
    expect(connection.send(BYTES)).toBe(CLOSED);
    expect([connection.established, connection.admitted]).toEqual([false, false]);
    meet();
    expect([connection.established, connection.admitted]).toEqual([true, true]);
    expect(calls.progress).toBeGreaterThan(0);
    expect(calls.touched).toBeGreaterThan(0);
  });

  it("does not admit where the leader grants no stream", () => {
    const { connection, meet } = setup({ streams: 0 });
    connection.open();
    meet();
    expect([connection.established, connection.admitted]).toEqual([true, false]);
    expect(connection.send(BYTES)).toBe(BLOCKED);
  });
});

describe("a connection whose leader grants no stream", () => {
  function waiting() {
    const fixture = setup({ streams: 0 });
    fixture.connection.open();
    fixture.meet();
    return fixture;
  }

  it("ends as silent the idle timeout after its handshake, although the leader responds", () => {
    const { connection, meet, server, clock, pendingCloses, calls } = waiting();
    for (let seconds = 1; seconds < SILENCE_MS / 1_000; seconds += 1) {
      clock.advance(1_000);
      connection.ping();
      meet();
    }
    clock.advance(999);
    connection.scanTimeouts();
    expect(pendingCloses).toEqual([]);
    clock.advance(1);
    expect(connection.scanTimeouts()).toBe(-1);
    expect(pendingCloses).toEqual([{ kind: "silence", code: 0 }]);
    meet();
    expect(server.peerError()).toMatchObject({ isApp: true, errorCode: 0 });
    expect(calls.gone).toBe(1);
  });

  it("stays open where the leader grants one in that time", () => {
    const binding = { timeout: () => 294_000, writable: () => noStreams };
    const { connection, clock, pendingCloses } = stubbed(binding, undefined, 0);
    clock.advance(SILENCE_MS - 1);
    expect(connection.scanTimeouts()).toBe(1);
    connection.receive(BYTES);
    clock.advance(SILENCE_MS - 1);
    expect([connection.scanTimeouts(), connection.admitted]).toEqual([294_000, true]);
    expect(pendingCloses).toEqual([]);
  });
});

describe("a connection's send", () => {
  it("puts each transaction on its own finished stream, in its own datagram", () => {
    const { connection, server, take, wire } = established();
    const streams = [connection.send(BYTES), connection.send(BYTES), connection.send(BYTES)];
    expect(streams).toEqual([2, 6, 10]);
    const datagrams = take();
    expect(datagrams).toHaveLength(3);
    for (const datagram of datagrams) wire.receive(datagram);
    for (const stream of streams) {
      expect(readAll(server, stream)).toEqual({ bytes: "a transaction", ended: true });
    }
  });

  it("accepts what fits a stream of this leader, and rejects one more byte as too large", () => {
    const { connection, server, meet } = established({ streamBytes: 100 });
    expect(connection.send(new Uint8Array(101))).toBe(TOO_LARGE);
    const stream = connection.send(new Uint8Array(100));
    meet();
    expect([stream, readAll(server, stream).ended]).toEqual([2, true]);
  });

  it("is blocked without a granted stream, writes nothing then, and continues when renewed", () => {
    const { connection, server, take, meet, calls } = established({ streams: 2 });
    expect([connection.send(BYTES), connection.send(BYTES)]).toEqual([2, 6]);
    meet();
    expect(connection.send(BYTES)).toBe(BLOCKED);
    expect(take()).toEqual([]);
    const before = calls.progress;
    for (const stream of [2, 6]) readAll(server, stream);
    meet();
    expect(calls.progress).toBeGreaterThan(before);
    expect(connection.send(BYTES)).toBe(10);
  });

  it("is blocked before it would leave a transaction half written", () => {
    const { connection, server, meet } = established();
    const sent: number[] = [];
    // The leader does not respond, so the congestion window fills.
    let answer = connection.send(new Uint8Array(1232));
    for (; answer >= 0; answer = connection.send(new Uint8Array(1232))) sent.push(answer);
    expect(answer).toBe(BLOCKED);
    expect(sent.length).toBeGreaterThan(5);
    expect(sent.length).toBeLessThan(128);
    meet();
    expect(sent.map((stream) => readAll(server, stream).ended)).toEqual(sent.map(() => true));
    expect(connection.send(BYTES)).toBeGreaterThan(0);
  });
});

describe("a connection's room", () => {
  it("is quiche's capacity less the datagram overhead, including the next one", () => {
    const { connection } = stubbed({ streamCapacity: () => 99 });
    const half = new Uint8Array(40);
    expect(connection.send(new Uint8Array(48))).toBe(BLOCKED);
    expect([connection.send(half), connection.send(half)]).toEqual([2, BLOCKED]);
    connection.receive(BYTES);
    expect(connection.send(half)).toBe(6);
  });

  it("is enough when it equals the stream's capacity", () => {
    const { connection } = stubbed({ streamCapacity: () => 100 });
    expect([1, 2, 3].map(() => connection.send(new Uint8Array(100)))).toEqual([2, 6, 10]);
  });
});

describe("a stream result", () => {
  it("is reported once the leader acknowledged all of it, of a later stream at the end", () => {
    const { connection, take, wire, results } = established();
    const lost = connection.send(BYTES);
    take();
    const stream = connection.send(BYTES);
    for (const datagram of take()) wire.receive(datagram);
    // Only once: a retransmission, which takes only a short pause of the machine, is lost too.
    for (const datagram of wire.take()) connection.receive(datagram);
    expect(results).toEqual([]);
    connection.close();
    expect(lost).not.toBe(stream);
    expect(results).toEqual([[stream, ACKED]]);
  });

  it("is reported once as STOPPED when the leader stopped it", () => {
    const { connection, server, take, wire, calls, results } = established();
    // Two datagrams, of which one arrives: a complete stream can no longer be stopped.
    const stream = connection.send(new Uint8Array(2_000));
    const [first = BYTES, ...others] = take();
    expect(others).toHaveLength(1);
    wire.receive(first);
    for (const datagram of wire.take()) connection.receive(datagram);
    expect(results).toEqual([]);
    server.streamShutdown(stream, quiche.Shutdown.Read, 9);
    for (const datagram of wire.take()) connection.receive(datagram);
    const before = calls.progress;
    connection.scanTimeouts();
    expect(calls.progress).toBe(before + 1);
    connection.close();
    expect(results).toEqual([[stream, STOPPED]]);
  });
});

describe("a connection's end", () => {
  it.each([
    [true, "app", 2],
    [false, "transport", 2],
  ] as const)(
    "by the leader (application: %s) is reported once with its code",
    (isApp, kind, code) => {
      const { connection, server, meet, calls, results, pendingCloses } = established();
      connection.send(BYTES);
      server.close(isApp, code, new Uint8Array(0));
      meet();
      expect(pendingCloses).toEqual([{ kind, code }]);
      connection.ping();
      connection.close();
      expect([connection.send(BYTES), results]).toEqual([CLOSED, []]);
      expect([connection.scanTimeouts(), pendingCloses.length, calls.gone]).toEqual([-1, 1, 1]);
    },
  );

  it("comes after the acknowledgements sent with it, and nothing is sent in between", () => {
    const seen: unknown[] = [];
    const goodbye = { isApp: true, errorCode: 4, reason: new Uint8Array(0) };
    const calls = { streamFinished: () => true, isDraining: () => true, peerError: () => goodbye };
    const { connection, results, pendingCloses } = stubbed(calls, () =>
      seen.push(connection.send(BYTES), pendingCloses.length),
    );
    const stream = connection.send(BYTES);
    connection.receive(BYTES);
    expect([results, seen]).toEqual([[[stream, ACKED]], [CLOSED, 0]]);
    expect(pendingCloses).toEqual([{ kind: "app", code: 4 }]);
  });

  it("is reported on a stateless reset, and only on a valid one", () => {
    const { connection, results, pendingCloses, theirId } = established({ resetToken: 0x5an });
    connection.send(BYTES);
    // RFC 9000 section 10.3: it looks like a packet, and ends in the token.
    const reset = Buffer.concat([Uint8Array.of(0x40), theirId(), randomBytes(60)]);
    for (const last of [0x5b, 0x5a]) {
      expect(pendingCloses).toEqual([]);
      reset.fill(0, reset.length - 16).writeUInt8(last, reset.length - 1);
      connection.receive(Buffer.from(reset));
    }
    expect(pendingCloses).toEqual([{ kind: "silence", code: 0 }]);
    expect([connection.send(BYTES), results]).toEqual([CLOSED, []]);
  });

  it("is local when a leader sends far more than it is sent", () => {
    const { connection, closes, pendingCloses } = stubbed({});
    const datagram = new Uint8Array(1_000);
    // Once the last of the datagrams that earned their quota is read.
    const most = Math.floor(LEADER_SAYS_BYTES_MAX / 1_000) - 1;
    for (let index = 0; index < 3 * most; index += 1) {
      for (let deliveries = 0; deliveries < 20; deliveries += 1)
        connection.send(new Uint8Array(100));
      connection.receive(datagram);
    }
    expect(pendingCloses).toEqual([]);
    for (let index = 0; index < most; index += 1) connection.receive(datagram);
    expect(pendingCloses).toEqual([]);
    connection.receive(datagram);
    expect([closes, pendingCloses]).toEqual([[[false, 1]], [{ kind: "local", code: 0 }]]);
  });

  it("is not reported when local; the leader receives code 0", () => {
    const { connection, server, meet, calls, pendingCloses } = established();
    connection.close();
    connection.close();
    meet();
    expect(server.peerError()).toMatchObject({ isApp: true, errorCode: 0 });
    expect([pendingCloses, calls.gone]).toEqual([[], 1]);
  });
});

describe("a connection whose round trip quiche overestimates", () => {
  /** As after many losses: 98 s; quiche would wait three times that for a response. */
  function misjudged() {
    const path = stub<ReturnType<QuicheConnection["pathStats"]>[number]>({ rtt: 98_000 });
    const fixture = stubbed({
      pathStats: () => [path],
      timeout: () => 294_000,
      writable: () => noStreams,
      streamFinished: () => true,
    });
    for (let sample = 0; sample < 8; sample += 1) {
      fixture.connection.send(BYTES);
      fixture.clock.advance(80);
      fixture.connection.receive(BYTES);
    }
    return fixture;
  }

  it("knows the correct round trip, and that it is degraded", () => {
    const { connection } = misjudged();
    expect([connection.rttUs, connection.isDegraded]).toEqual([80_000, true]);
  });

  it("ends as silent when a response is owed for the idle timeout", () => {
    const { connection, clock, pendingCloses, calls } = misjudged();
    connection.send(BYTES);
    expect(connection.scanTimeouts()).toBe(SILENCE_MS);
    clock.advance(SILENCE_MS - 1);
    connection.ping();
    expect([connection.scanTimeouts(), pendingCloses]).toEqual([1, []]);
    clock.advance(1);
    expect([connection.scanTimeouts(), pendingCloses]).toEqual([
      -1,
      [{ kind: "silence", code: 0 }],
    ]);
    expect([calls.gone, connection.send(BYTES)]).toEqual([1, CLOSED]);
  });

  it("stays open without an owed response, within the idle timeout", () => {
    const { connection, clock, pendingCloses } = misjudged();
    clock.advance(SILENCE_MS - 1);
    expect([connection.scanTimeouts(), pendingCloses]).toEqual([294_000, []]);
  });
});

describe("a connection whose idle timeout passed while the process was suspended", () => {
  it.each(["send", "ping", "receive", "scanTimeouts"] as const)(
    "is over, with %s first",
    (first) => {
      const { connection, clock, pendingCloses, calls } = stubbed({});
      clock.advance(SILENCE_MS);
      connection[first](BYTES);
      // Buffered datagrams may acknowledge deliveries, so they are processed.
      expect([calls.progress, pendingCloses.length]).toEqual(first === "receive" ? [2, 0] : [1, 1]);
      expect([connection.send(BYTES), pendingCloses]).toEqual([
        CLOSED,
        [{ kind: "silence", code: 0 }],
      ]);
    },
  );
});

describe("a ping", () => {
  it("makes the leader respond", () => {
    const { connection, take, wire } = established();
    connection.ping();
    const datagrams = take();
    expect(datagrams.length).toBeGreaterThan(0);
    for (const datagram of datagrams) wire.receive(datagram);
    expect(wire.take().length).toBeGreaterThan(0);
  });
});

describe("an error of the binding", () => {
  it.each<readonly [string, Partial<QuicheConnection>]>([
    ["opening a stream", { streamPriority: broken }],
    ["asking for its room", { streamCapacity: broken }],
    ["writing to it", { streamSend: broken }],
    ["writing less than there was room for", { streamSend: () => 1 }],
    ["making a datagram", { send: broken }],
  ])("in %s ends the connection as local, and notifies the leader", (_, fault) => {
    const { connection, closes, pendingCloses, calls } = stubbed(fault);
    expect(connection.send(BYTES)).toBe(CLOSED);
    expect(pendingCloses).toEqual([{ kind: "local", code: 0 }]);
    // RFC 9000 section 20.1: INTERNAL_ERROR.
    expect([closes, calls.gone]).toEqual([[[false, 1]], 1]);
  });

  it("in receive or ping does so too, and nothing is thrown", () => {
    const reading = stubbed({ recv: broken, streamFinished: broken });
    reading.connection.receive(BYTES);
    const pinging = stubbed({ sendAckEliciting: broken, close: broken });
    pinging.connection.ping();
    for (const { pendingCloses } of [reading, pinging]) {
      expect(pendingCloses).toEqual([{ kind: "local", code: 0 }]);
    }
    expect(reading.results).toEqual([]);
  });
});
