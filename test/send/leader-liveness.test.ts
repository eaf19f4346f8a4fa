import { describe, expect, it } from "vitest";
import { BYTES, live, setup } from "./leader-fixture.ts";

describe("a leader that reports a transaction as too large", () => {
  const large = new Uint8Array(1_233);

  it("gets no more of that size, and legacy sizes as before", () => {
    const { connection, trySend, later, connect, queueUntilLive } = twice(large);
    expect(trySend(3, large)).toBe("stream_too_large");
    expect(trySend(4, new Uint8Array(1_232))).toBe("accepted");
    connection().end({ kind: "app", code: 0 });
    later(20_000);
    connect();
    expect(queueUntilLive(5, large)).toBe("stream_too_large");
  });

  it("is ignored when it had received none", () => {
    expect(twice(BYTES).trySend(3, large)).toBe("accepted");
  });

  /** A leader whose connection was closed with code 5 after that delivery, and is live again. */
  function twice(bytes: Uint8Array<ArrayBuffer>) {
    const fixture = live();
    fixture.trySend(1, bytes);
    fixture.connection().end({ kind: "app", code: 5 });
    fixture.later(1_000);
    fixture.connect();
    fixture.connection().admit();
    return fixture;
  }
});

describe("the leader stats written by a leader", () => {
  it("include the handshake, the grant, the round trip and the delivery time", () => {
    const { connect, connection, trySend, clock, stats } = setup();
    connect();
    clock.advance(30);
    connection().retried = true;
    connection().establish();
    clock.advance(10);
    connection().rttUs = 12_000;
    connection().admit(64);
    trySend(1);
    clock.advance(25);
    connection().ack(0);
    expect(stats).toMatchObject({
      attempts: 1,
      admitted: 1,
      handshakeUs: 30_000,
      retries: 1,
      admittedLate: 1,
      streamsMax: 64,
      rttUs: 12_000,
      sent: 1,
      acked: 1,
      neededUs: 25_000,
    });
  });

  it("include an eviction, idle or not, and deliveries without credit", () => {
    const { connection, trySend, later, stats, connect } = live(1);
    trySend(1);
    trySend(2);
    later(800);
    expect(stats.saturated).toBe(1);
    connection().end({ kind: "app", code: 1 });
    expect([stats.ends.evicted, stats.evictedIdle]).toEqual([1, 0]);
    later(1_000);
    connect();
    connection().admit();
    connection().end({ kind: "app", code: 1 });
    expect([stats.ends.evicted, stats.evictedIdle]).toEqual([2, 1]);
  });
});

describe("a leader is reported unreachable", () => {
  const CLOSED = { kind: "app", code: 0 } as const;
  const EVICTED = { kind: "app", code: 1 } as const;
  const SILENT = { kind: "silence", code: 0 } as const;

  it("when a used connection is closed or times out, once until it is back", () => {
    for (const cause of [CLOSED, SILENT]) {
      const { connection, trySend, later, unreachable, connect } = live();
      trySend(1);
      connection().end(cause);
      expect(unreachable).toHaveLength(1);
      later(1_000);
      connect();
      connection().end(SILENT);
      expect(unreachable).toHaveLength(1);
      later(64_000);
      connect();
      connection().admit();
      trySend(2);
      connection().end(cause);
      expect(unreachable).toHaveLength(2);
    }
  });

  it("when it no longer responds, but not when an idle connection ends", () => {
    const { connection, later, unreachable, connect } = live();
    connection().end(CLOSED);
    expect(unreachable).toEqual([]);
    later(1_000);
    connect();
    later(3_000);
    expect(unreachable).toHaveLength(1);
  });

  it("not when it evicts a connection, but when it is gone afterwards", () => {
    const { connection, trySend, later, unreachable, connect } = live();
    trySend(1);
    connection().end(EVICTED);
    expect(unreachable).toEqual([]);
    later(1_000);
    connect();
    connection().admit();
    trySend(2);
    connection().end(EVICTED);
    expect(unreachable).toEqual([]);
    later(1_000);
    connect();
    later(3_000);
    expect(unreachable).toHaveLength(1);
  });

  it("not when it never responded, nor when it is full", () => {
    const dead = setup();
    dead.connect();
    dead.later(3_000);
    expect(dead.unreachable).toEqual([]);
    const { connection, trySend, unreachable } = live();
    trySend(1);
    connection().end({ kind: "app", code: 4 });
    expect(unreachable).toEqual([]);
  });
});

describe("just before the leader window", () => {
  /** A live leader on an engine that counts datagrams, two seconds before its window. */
  function waiting() {
    const fixture = live();
    fixture.connection().datagramsReceived = 0;
    fixture.leader.windowStartNs = fixture.clock.nowNs() + 2_000 * 1_000_000;
    return { ...fixture, first: fixture.connection() };
  }

  it("a responding connection is kept", () => {
    const { first, later, transport } = waiting();
    later(1_000);
    const { pings } = first;
    later(400);
    expect(first.pings).toBe(pings + 1);
    first.datagramsReceived += 1;
    for (let count = 0; count < 12; count += 1) later(50);
    expect(transport.made.length).toBe(1);
  });

  it("a silent one is replaced, and serves until the other is live", () => {
    const { first, later, trySend, transport, connection, counters, stats } = waiting();
    for (let count = 0; count < 35; count += 1) later(50);
    expect([transport.made.length, counters.silentBeforeWindow, stats.silentBeforeWindow]).toEqual([
      2, 1, 1,
    ]);
    trySend(1);
    connection().admit();
    trySend(2);
    expect([first.sent.length, connection().sent.length]).toEqual([1, 1]);
  });
});
