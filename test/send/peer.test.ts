import { describe, expect, it } from "vitest";
import { COPIES_IN_FLIGHT_MAX } from "../../src/send/limits.ts";
import type { newSendCounters } from "../../src/send/send-counters.ts";
import type { Ending, Transport } from "../../src/send/transport.ts";
import { createFakeTransport } from "../support/fake-transport.ts";
import { packetOf } from "../support/packets.ts";
import { BYTES, live, setup, TARGET } from "./peer-rig.ts";

describe("a peer's state", () => {
  it("goes from idle over connecting and waiting to live, and back when it ends", () => {
    const { peer, connect, connection } = setup();
    const states = [peer.state];
    connect();
    states.push(peer.state);
    connection().establish();
    states.push(peer.state);
    connection().admit();
    states.push(peer.state);
    expect([peer.live, peer.links]).toEqual([true, 1]);
    connection().end({ kind: "app", code: 0 });
    states.push(peer.state);
    expect(states).toEqual(["idle", "connecting", "waiting", "live", "idle"]);
    expect([peer.live, peer.links]).toEqual([false, 0]);
  });

  it("stays idle and paced when the connection cannot begin", () => {
    const { peer, card, clock, connect, transport, counters } = setup();
    transport.failing = true;
    connect();
    expect([card.reachable, card.standing, card.ends.local]).toEqual([false, 0.75, 1]);
    expect([peer.state, peer.failures, counters.connectionsFailed]).toEqual(["idle", 1, 1]);
    expect([peer.mayConnect(clock.nowNs()), peer.paced(clock.nowNs())]).toEqual([false, true]);
    clock.advance(8_000);
    expect([peer.mayConnect(clock.nowNs()), peer.paced(clock.nowNs())]).toEqual([true, false]);
  });

  it("is idle when the connection ended while it was begun", () => {
    const inner = createFakeTransport();
    const transport: Transport = {
      ...inner,
      connect(address, events) {
        const connection = inner.connect(address, events);
        events.ended({ kind: "local", code: 0 });
        return connection;
      },
    };
    const { peer, connect, counters } = setup({ ...inner, ...transport });
    connect();
    expect([peer.state, counters.connectionsEnded, counters.connectionsFailed]).toEqual([
      "idle",
      1,
      0,
    ]);
  });
});

describe("an offer", () => {
  it("is refused without a live connection, and nothing of it is kept", () => {
    const { peer, connect, connection, offer, story } = setup();
    expect(offer(1)).toBe("not_connected");
    connect();
    connection().establish();
    expect(offer(1)).toBe("not_connected");
    connection().admit();
    expect([peer.queued, story]).toEqual([0, []]);
  });

  it("goes out at once, with bytes of the caller's and no copy of them kept", () => {
    const { peer, connection, offer, story } = live();
    expect(offer(1)).toBe("taken");
    expect(connection().sent).toEqual([BYTES]);
    expect([peer.queued, peer.inFlight, story]).toEqual([0, 1, ["1 leader sent"]]);
  });

  it("waits without credit, in order, up to the bound of the queue", () => {
    const { peer, connection, offer, counters, story } = live(1);
    expect([1, 2, 3, 4, 5].map((id) => offer(id))).toEqual([
      "taken",
      "taken",
      "taken",
      "taken",
      "leader_saturated",
    ]);
    expect([peer.queued, counters.copiesQueued]).toEqual([3, 3]);
    connection().grant(2);
    expect(story).toEqual(["1 leader sent", "2 leader sent", "3 leader sent"]);
    expect(peer.queued).toBe(1);
  });

  it("does not overtake a copy that waits", () => {
    const { connection, offer, story } = live(0);
    offer(1);
    connection().credit = 5;
    offer(2);
    expect(story).toEqual([]);
    connection().grant(0);
    expect(story).toEqual(["1 leader sent", "2 leader sent"]);
  });

  it("is refused when no stream of this leader could carry it, waiting or not", () => {
    const { connection, offer, story } = live(0);
    connection().streamBytesMax = 3;
    expect(offer(1, new Uint8Array(4))).toBe("stream_too_large");
    offer(2);
    expect(offer(3, new Uint8Array(4))).toBe("taken");
    connection().grant(5);
    expect(story).toEqual(["2 leader sent", "3 leader dropped stream_too_large"]);
  });

  it("is refused when the connection ends over it, before anything was sent", () => {
    const { connection, offer, story, peer } = live();
    connection().endOnSend = { kind: "local", code: 0 };
    expect(offer(1)).toBe("not_connected");
    expect([story, peer.state]).toEqual([[], "idle"]);
  });

  it("at the bound of those in flight ends the oldest one's wait", () => {
    const { peer, connection, offer, story } = live(COPIES_IN_FLIGHT_MAX + 1);
    for (let id = 1; id <= COPIES_IN_FLIGHT_MAX; id += 1) offer(id);
    expect(peer.inFlight).toBe(COPIES_IN_FLIGHT_MAX);
    story.length = 0;
    const next = COPIES_IN_FLIGHT_MAX + 1;
    offer(next);
    expect(story).toEqual(["1 leader failed too_many_in_flight", `${next} leader sent`]);
    connection().ack(1);
    expect(story.at(-1)).toBe("2 leader acked");
  });
});

describe("a copy that awaits a connection", () => {
  it("is kept only while one is being made, and sent when it is live", () => {
    const { connect, connection, awaitLive, story } = setup();
    expect(awaitLive(1)).toBe("not_connected");
    connect();
    expect([1, 2, 3, 4].map((id) => awaitLive(id))).toEqual([
      "taken",
      "taken",
      "taken",
      "queue_full",
    ]);
    connection().admit();
    expect(story).toEqual(["1 leader sent", "2 leader sent", "3 leader sent"]);
  });

  it("gives way to one that pays more as to a full queue, not to a saturated leader", () => {
    const { peer, card, clock, connect, connection, awaitLive, story } = setup();
    connect();
    for (const id of [1, 2, 3]) awaitLive(id);
    const better = { ...packetOf(4, BYTES), priorityLamports: 1 };
    expect(peer.awaitLive(better, TARGET, clock.nowNs())).toBe("taken");
    expect([story, card.saturated]).toEqual([["3 leader dropped queue_full"], 0]);
    connection().admit();
    expect(story.slice(1)).toEqual(["4 leader sent", "1 leader sent", "2 leader sent"]);
  });

  it("expires as such before the handshake, and as saturation after it", () => {
    const { connect, connection, awaitLive, later, story } = setup();
    connect();
    awaitLive(1);
    later(799);
    expect(story).toEqual([]);
    later(1);
    connection().establish();
    awaitLive(2);
    later(800);
    expect(story).toEqual(["1 leader dropped expired", "2 leader dropped leader_saturated"]);
  });

  it("is dropped when the connection ends and none may be made", () => {
    const { connect, connection, awaitLive, story } = setup();
    connect();
    awaitLive(1);
    connection().end({ kind: "silence", code: 0 });
    expect(story).toEqual(["1 leader dropped not_connected"]);
  });
});

describe("what is in flight", () => {
  it("is told as acked or stopped, and lost when the connection ends", () => {
    const { connection, offer, story } = live();
    for (let id = 1; id <= 3; id += 1) offer(id);
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

  it.each([
    ["leave", "connection_lost", "not_connected"],
    ["shutDown", "shutting_down", "shutting_down"],
  ] as const)("and what waits is ended once by %s", (act, failed, dropped) => {
    const { peer, connection, offer, story } = live(1);
    offer(1);
    offer(2);
    peer[act]();
    peer[act]();
    expect(story.slice(1)).toEqual([`1 leader failed ${failed}`, `2 leader dropped ${dropped}`]);
    expect([connection().closed, peer.state, peer.links]).toEqual([true, "idle", 0]);
  });
});

describe("the end of a connection", () => {
  it.each<readonly [Ending, keyof ReturnType<typeof newSendCounters>]>([
    [{ kind: "silence", code: 0 }, "endedSilent"],
    [{ kind: "local", code: 0 }, "endedLocal"],
    [{ kind: "transport", code: 2 }, "endedTransport"],
    [{ kind: "app", code: 0 }, "endedOtherCode"],
    [{ kind: "app", code: 1 }, "endedDropped"],
    [{ kind: "app", code: 2 }, "endedDisallowed"],
    [{ kind: "app", code: 3 }, "endedOtherCode"],
    [{ kind: "app", code: 4 }, "endedTooMany"],
    [{ kind: "app", code: 5 }, "endedInvalidStream"],
  ])("by %j is counted as %s", (ending, counter) => {
    const { connection, counters } = live();
    connection().end(ending);
    expect([counters[counter], counters.connectionsEnded]).toEqual([1, 1]);
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

  it("is a handshake that takes too long, which is closed", () => {
    const { connect, connection, later, counters, peer } = setup();
    connect();
    later(2_999);
    expect(connection().closed).toBe(false);
    later(1);
    expect([connection().closed, peer.state, counters.handshakeTimeouts]).toEqual([
      true,
      "idle",
      1,
    ]);
  });
});

describe("an old connection", () => {
  /** A peer whose connection is just old enough, and has one copy in flight. */
  function old() {
    const rig = live();
    const first = rig.connection();
    rig.clock.advance(59_999);
    expect(rig.peer.mayRecycle(rig.clock.nowNs())).toBe(false);
    rig.clock.advance(1);
    expect(rig.peer.mayRecycle(rig.clock.nowNs())).toBe(true);
    rig.offer(1);
    rig.peer.recycle(rig.clock.nowNs());
    return { ...rig, first, second: rig.connection() };
  }

  it("is one that losses have worn, too, but no sooner than a leader grants one more", () => {
    const { peer, clock, connection } = live();
    clock.advance(7_999);
    connection().worn = true;
    expect(peer.mayRecycle(clock.nowNs())).toBe(false);
    clock.advance(1);
    expect(peer.mayRecycle(clock.nowNs())).toBe(true);
    connection().worn = false;
    expect(peer.mayRecycle(clock.nowNs())).toBe(false);
  });

  it("serves until its successor is live, then awaits its acknowledgements", () => {
    const { peer, first, second, offer, later, counters } = old();
    expect(peer.links).toBe(2);
    offer(2);
    second.admit();
    offer(3);
    expect([first.sent.length, second.sent.length]).toEqual([2, 1]);
    expect([peer.links, peer.inFlight, counters.connectionsRecycled]).toEqual([1, 3, 1]);
    first.ack(0);
    first.ack(1);
    expect(first.closed).toBe(false);
    later(50);
    expect([first.closed, second.closed, peer.inFlight]).toEqual([true, false, 1]);
  });

  it("is not replaced again before that is done, however old its successor", () => {
    const { peer, clock, second, later } = old();
    clock.advance(60_000);
    expect(peer.mayRecycle(clock.nowNs())).toBe(false);
    second.admit();
    clock.advance(60_000);
    expect(peer.mayRecycle(clock.nowNs())).toBe(false);
    later(0);
    expect(peer.mayRecycle(clock.nowNs())).toBe(true);
  });

  it("is closed after a while even when an acknowledgement is missing", () => {
    const { first, second, later, story } = old();
    second.admit();
    later(1_999);
    expect(first.closed).toBe(false);
    later(1);
    expect(first.closed).toBe(true);
    expect(story).toEqual(["1 leader sent", "1 leader failed connection_lost"]);
  });

  it("leaves its place to a successor that is on its way", () => {
    const { peer, first, second } = old();
    first.end({ kind: "app", code: 1 });
    expect([peer.state, peer.links]).toEqual(["connecting", 1]);
    second.admit();
    expect(peer.state).toBe("live");
  });

  it("stays alone after its leader said that it has too many", () => {
    const { peer, second, later, clock } = old();
    second.end({ kind: "app", code: 4 });
    later(300_000);
    expect(peer.mayRecycle(clock.nowNs())).toBe(false);
  });

  it("stays when its successor fails", () => {
    const { peer, first, second } = old();
    second.end({ kind: "app", code: 4 });
    expect([peer.state, peer.links, first.closed]).toEqual(["live", 1, false]);
  });
});

describe("the connection's age", () => {
  it("is told with all news of a copy, as it was when the copy came", () => {
    const { offer, connection, later, ages, story } = live();
    later(250);
    offer(1);
    later(100);
    connection().ack(0);
    expect(story).toEqual(["1 leader sent", "1 leader acked"]);
    expect(ages).toEqual([250, 250]);
  });

  it("is negative for a copy that waited for the connection, and none where there was none", () => {
    const { connect, awaitLive, connection, later, ages, story } = setup();
    connect();
    awaitLive(1);
    later(40);
    connection().admit(1);
    awaitLive(2);
    connection().end({ kind: "app", code: 0 });
    expect(story[0]).toBe("1 leader sent");
    expect(ages).toEqual([-40, -40, Number.NaN]);
  });
});
