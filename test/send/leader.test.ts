import { describe, expect, it } from "vitest";
import type { CloseReason } from "../../src/send/close-policy.ts";
import { DELIVERIES_IN_FLIGHT_MAX } from "../../src/send/limits.ts";
import type { CloseCause, Transport } from "../../src/send/transport.ts";
import { createFakeTransport } from "../support/fake-transport.ts";
import { packetOf } from "../support/packets.ts";
import { BYTES, live, setup } from "./leader-fixture.ts";

describe("the state of a leader", () => {
  it("goes from idle over connecting and waiting to live, and back when it ends", () => {
    const { leader, connect, connection } = setup();
    const states = [leader.state];
    connect();
    states.push(leader.state);
    connection().establish();
    states.push(leader.state);
    connection().admit();
    states.push(leader.state);
    expect([leader.live, leader.openConnections]).toEqual([true, 1]);
    connection().end({ kind: "app", code: 0 });
    states.push(leader.state);
    expect(states).toEqual(["idle", "connecting", "waiting", "live", "idle"]);
    expect([leader.live, leader.openConnections]).toEqual([false, 0]);
  });

  it("stays idle with a backoff when the connection cannot start", () => {
    const { leader, stats, clock, connect, transport, counters } = setup();
    transport.failing = true;
    connect();
    expect([stats.reachable, stats.reliability, stats.ends.local]).toEqual([false, 0.75, 1]);
    expect([leader.state, leader.failures, counters.connectionsFailed]).toEqual(["idle", 1, 1]);
    expect([leader.mayConnect(clock.nowNs()), leader.inBackoff(clock.nowNs())]).toEqual([
      false,
      true,
    ]);
    clock.advance(8_000);
    expect([leader.mayConnect(clock.nowNs()), leader.inBackoff(clock.nowNs())]).toEqual([
      true,
      false,
    ]);
  });

  it("is idle when the connection ended during connect", () => {
    const inner = createFakeTransport();
    const transport: Transport = {
      ...inner,
      connect(address, events) {
        const connection = inner.connect(address, events);
        events.ended({ kind: "local", code: 0 });
        return connection;
      },
    };
    const { leader, connect, counters } = setup({ ...inner, ...transport });
    connect();
    expect([leader.state, counters.connectionsEnded, counters.connectionsFailed]).toEqual([
      "idle",
      1,
      0,
    ]);
  });
});

describe("trySend", () => {
  it("is rejected without a live connection, and queues nothing", () => {
    const { leader, connect, connection, trySend, story } = setup();
    expect(trySend(1)).toBe("not_connected");
    connect();
    connection().establish();
    expect(trySend(1)).toBe("not_connected");
    connection().admit();
    expect([leader.queued, story]).toEqual([0, []]);
  });

  it("sends immediately, with the caller's bytes and without keeping them", () => {
    const { leader, connection, trySend, story } = live();
    expect(trySend(1)).toBe("accepted");
    expect(connection().sent).toEqual([BYTES]);
    expect([leader.queued, leader.inFlight, story]).toEqual([0, 1, ["1 leader sent"]]);
  });

  it("queues without credit, in order, up to the bound of the queue", () => {
    const { leader, connection, trySend, counters, story } = live(1);
    expect([1, 2, 3, 4, 5].map((id) => trySend(id))).toEqual([
      "accepted",
      "accepted",
      "accepted",
      "accepted",
      "leader_saturated",
    ]);
    expect([leader.queued, counters.deliveriesQueued]).toEqual([3, 3]);
    connection().grant(2);
    expect(story).toEqual(["1 leader sent", "2 leader sent", "3 leader sent"]);
    expect(leader.queued).toBe(1);
  });

  it("does not overtake a queued delivery", () => {
    const { connection, trySend, story } = live(0);
    trySend(1);
    connection().credit = 5;
    trySend(2);
    expect(story).toEqual([]);
    connection().grant(0);
    expect(story).toEqual(["1 leader sent", "2 leader sent"]);
  });

  it("is rejected when no stream of this leader could carry it, queued or not", () => {
    const { connection, trySend, story } = live(0);
    connection().streamBytesMax = 3;
    expect(trySend(1, new Uint8Array(4))).toBe("stream_too_large");
    trySend(2);
    expect(trySend(3, new Uint8Array(4))).toBe("accepted");
    connection().grant(5);
    expect(story).toEqual(["2 leader sent", "3 leader dropped stream_too_large"]);
  });

  it("is rejected when the connection ends during it, before anything was sent", () => {
    const { connection, trySend, story, leader } = live();
    connection().endOnSend = { kind: "local", code: 0 };
    expect(trySend(1)).toBe("not_connected");
    expect([story, leader.state]).toEqual([[], "idle"]);
  });

  it("ends the oldest delivery at the in-flight bound", () => {
    const { leader, connection, trySend, story } = live(DELIVERIES_IN_FLIGHT_MAX + 1);
    for (let id = 1; id <= DELIVERIES_IN_FLIGHT_MAX; id += 1) trySend(id);
    expect(leader.inFlight).toBe(DELIVERIES_IN_FLIGHT_MAX);
    story.length = 0;
    const next = DELIVERIES_IN_FLIGHT_MAX + 1;
    trySend(next);
    expect(story).toEqual(["1 leader failed too_many_in_flight", `${next} leader sent`]);
    connection().ack(1);
    expect(story.at(-1)).toBe("2 leader acked");
  });
});

describe("a delivery queued for a connection", () => {
  it("is kept only while one is being opened, and sent when it is live", () => {
    const { connect, connection, queueUntilLive, story } = setup();
    expect(queueUntilLive(1)).toBe("not_connected");
    connect();
    expect([1, 2, 3, 4].map((id) => queueUntilLive(id))).toEqual([
      "accepted",
      "accepted",
      "accepted",
      "queue_full",
    ]);
    connection().admit();
    expect(story).toEqual(["1 leader sent", "2 leader sent", "3 leader sent"]);
  });

  it("is evicted by a higher priority as queue_full, not as leader_saturated", () => {
    const { leader, stats, clock, connect, connection, queueUntilLive, story } = setup();
    connect();
    for (const id of [1, 2, 3]) queueUntilLive(id);
    const better = { ...packetOf(4, BYTES), offeredLamports: 1 };
    expect(leader.queueUntilLive(better, clock.nowNs())).toBe("accepted");
    expect([story, stats.saturated]).toEqual([["3 leader dropped queue_full"], 0]);
    connection().admit();
    expect(story.slice(1)).toEqual(["4 leader sent", "1 leader sent", "2 leader sent"]);
  });

  it("expires as expired before the handshake, and as saturated after it", () => {
    const { connect, connection, queueUntilLive, later, story } = setup();
    connect();
    queueUntilLive(1);
    later(799);
    expect(story).toEqual([]);
    later(1);
    connection().establish();
    queueUntilLive(2);
    later(800);
    expect(story).toEqual(["1 leader dropped expired", "2 leader dropped leader_saturated"]);
  });

  it("is dropped when the connection ends and none may be opened", () => {
    const { connect, connection, queueUntilLive, story } = setup();
    connect();
    queueUntilLive(1);
    connection().end({ kind: "silence", code: 0 });
    expect(story).toEqual(["1 leader dropped not_connected"]);
  });
});

describe("a delivery in flight", () => {
  it("is reported as acked or stopped, and lost when the connection ends", () => {
    const { connection, trySend, story } = live();
    for (let id = 1; id <= 3; id += 1) trySend(id);
    story.length = 0;
    connection().ack(0);
    connection().stop(1);
    connection().end({ kind: "transport", code: 1 });
    expect(story).toEqual([
      "1 leader acked",
      "2 leader failed stream_stopped",
      "3 leader failed connection_lost",
    ]);
  });

  it("whose end is lost is ended once, as late as the engine could have reported it", () => {
    const { connection, trySend, later, story, counters, leader } = live();
    connection().delay(1);
    trySend(1);
    later(1);
    trySend(2);
    later(2_799);
    expect(story).toEqual(["1 leader sent"]);
    later(1);
    expect(story.slice(1)).toEqual(["2 leader dropped expired"]);
    later(7_198);
    expect([story.length, leader.inFlight]).toEqual([2, 1]);
    later(1);
    expect(story.slice(2)).toEqual(["1 leader failed too_many_in_flight"]);
    expect([leader.queued, leader.inFlight, counters.deliveriesUnreported]).toEqual([0, 0, 2]);
    for (const number of [0, 1]) connection().ack(number);
    expect(story.length).toBe(3);
  });

  it("whose end is lost is ended on a connection that is being replaced, too", () => {
    const { connection, trySend, later, leader, clock, story } = live();
    connection().delay(0);
    trySend(1);
    clock.advance(2_000);
    leader.recycle(clock.nowNs());
    connection().admit();
    later(801);
    expect(story).toEqual(["1 leader dropped expired"]);
  });

  it.each([
    ["leave", "connection_lost", "not_connected"],
    ["shutDown", "shutting_down", "shutting_down"],
  ] as const)("and what waits is ended once by %s", (act, failed, dropped) => {
    const { leader, connection, trySend, story } = live(1);
    trySend(1);
    trySend(2);
    leader[act]();
    leader[act]();
    expect(story.slice(1)).toEqual([`1 leader failed ${failed}`, `2 leader dropped ${dropped}`]);
    expect([connection().closed, leader.state, leader.openConnections]).toEqual([true, "idle", 0]);
  });
});

describe("the end of a connection", () => {
  it.each<readonly [CloseCause, CloseReason]>([
    [{ kind: "silence", code: 0 }, "silent"],
    [{ kind: "local", code: 0 }, "local"],
    [{ kind: "transport", code: 2 }, "refused"],
    [{ kind: "transport", code: 1 }, "transport"],
    [{ kind: "app", code: 0 }, "closed"],
    [{ kind: "app", code: 1 }, "evicted"],
    [{ kind: "app", code: 2 }, "disallowed"],
    [{ kind: "app", code: 3 }, "too_many_streams"],
    [{ kind: "app", code: 4 }, "too_many"],
    [{ kind: "app", code: 5 }, "invalid_stream"],
  ])("by %j is counted as %s", (cause, reason) => {
    const { connection, counters } = live();
    connection().end(cause);
    expect([counters.ends[reason], counters.connectionsEnded]).toEqual([1, 1]);
  });

  it("is counted as a failed handshake before it was admitted, and not after", () => {
    const { connect, connection, counters } = setup();
    connect();
    connection().establish();
    connection().end({ kind: "app", code: 2 });
    expect([counters.connectionsNotAdmitted, counters.connectionsAdmitted]).toEqual([1, 0]);
    const other = live();
    other.connection().end({ kind: "app", code: 2 });
    expect(other.counters.connectionsNotAdmitted).toBe(0);
  });

  it("comes from a handshake timeout, which closes the connection", () => {
    const { connect, connection, later, counters, leader } = setup();
    connect();
    later(2_999);
    expect(connection().closed).toBe(false);
    later(1);
    expect([connection().closed, leader.state, counters.handshakeTimeouts]).toEqual([
      true,
      "idle",
      1,
    ]);
  });
});

describe("an old connection", () => {
  /** A leader whose connection just reached its lifetime, with one delivery in flight. */
  function old() {
    const fixture = live();
    const first = fixture.connection();
    fixture.clock.advance(59_999);
    expect(fixture.leader.mayRecycle(fixture.clock.nowNs())).toBe(false);
    fixture.clock.advance(1);
    expect(fixture.leader.mayRecycle(fixture.clock.nowNs())).toBe(true);
    fixture.trySend(1);
    fixture.leader.recycle(fixture.clock.nowNs());
    return { ...fixture, first, second: fixture.connection() };
  }

  it("includes a degraded one, but not before a leader grants one more", () => {
    const { leader, clock, connection } = live();
    clock.advance(7_999);
    connection().isDegraded = true;
    expect(leader.mayRecycle(clock.nowNs())).toBe(false);
    clock.advance(1);
    expect(leader.mayRecycle(clock.nowNs())).toBe(true);
    connection().isDegraded = false;
    expect(leader.mayRecycle(clock.nowNs())).toBe(false);
  });

  it("serves until its successor is live, then awaits its acknowledgements", () => {
    const { leader, first, second, trySend, later, counters } = old();
    expect(leader.openConnections).toBe(2);
    trySend(2);
    second.admit();
    trySend(3);
    expect([first.sent.length, second.sent.length]).toEqual([2, 1]);
    expect([leader.openConnections, leader.inFlight, counters.connectionsRecycled]).toEqual([
      1, 3, 1,
    ]);
    first.ack(0);
    first.ack(1);
    expect(first.closed).toBe(false);
    later(50);
    expect([first.closed, second.closed, leader.inFlight]).toEqual([true, false, 1]);
  });

  it("is not replaced again before that is done, however old its successor is", () => {
    const { leader, clock, second, later } = old();
    clock.advance(60_000);
    expect(leader.mayRecycle(clock.nowNs())).toBe(false);
    second.admit();
    clock.advance(60_000);
    expect(leader.mayRecycle(clock.nowNs())).toBe(false);
    later(0);
    expect(leader.mayRecycle(clock.nowNs())).toBe(true);
  });

  it("is closed after a timeout even when an acknowledgement is missing", () => {
    const { first, second, later, story } = old();
    second.admit();
    later(1_999);
    expect(first.closed).toBe(false);
    later(1);
    expect(first.closed).toBe(true);
    expect(story).toEqual(["1 leader sent", "1 leader failed connection_lost"]);
  });

  it("is replaced by a successor that is still connecting", () => {
    const { leader, first, second } = old();
    first.end({ kind: "app", code: 1 });
    expect([leader.state, leader.openConnections]).toEqual(["connecting", 1]);
    second.admit();
    expect(leader.state).toBe("live");
  });

  it("stays alone after its leader reported too many", () => {
    const { leader, second, later, clock } = old();
    second.end({ kind: "app", code: 4 });
    later(300_000);
    expect(leader.mayRecycle(clock.nowNs())).toBe(false);
  });

  it("stays when its successor fails", () => {
    const { leader, first, second } = old();
    second.end({ kind: "app", code: 4 });
    expect([leader.state, leader.openConnections, first.closed]).toEqual(["live", 1, false]);
  });
});

describe("the connection's age", () => {
  it("is included in all reports of a delivery, as of when the delivery arrived", () => {
    const { trySend, connection, later, ages, story } = live();
    later(250);
    trySend(1);
    later(100);
    connection().ack(0);
    expect(story).toEqual(["1 leader sent", "1 leader acked"]);
    expect(ages).toEqual([250, 250]);
  });

  it("is negative for a delivery queued before the connection, and NaN without one", () => {
    const { connect, queueUntilLive, connection, later, ages, story } = setup();
    connect();
    queueUntilLive(1);
    later(40);
    connection().admit(1);
    queueUntilLive(2);
    connection().end({ kind: "app", code: 0 });
    expect(story[0]).toBe("1 leader sent");
    expect(ages).toEqual([-40, -40, Number.NaN]);
  });
});
