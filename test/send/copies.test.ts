import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { Copies } from "../../src/send/copies.ts";
import { Link } from "../../src/send/leader-connection.ts";
import { Card } from "../../src/send/leader-stats.ts";
import { newSendCounters } from "../../src/send/send-counters.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { FakeConnection } from "../support/fake-transport.ts";
import { packetOf } from "../support/packets.ts";

const TARGET = { identity: "leader", address: "10.0.0.1:8009", slot: 7 };

function setUp(credit = 0, queuePerPeer = 3) {
  const clock = createFakeClock();
  const story: string[] = [];
  const times: (number | undefined)[] = [];
  const card = new Card(TARGET.identity, TARGET.address);
  const copies = new Copies(
    card,
    {
      clock,
      counters: newSendCounters(),
      report: (packetId, _target, kind, reason, _rttUs, _ageMs, _resend, atNs) => {
        story.push(`${packetId} ${reason ?? kind}`);
        times.push(atNs);
      },
    },
    { queuePerPeer, copyTtlMs: 800 },
  );
  const link = new Link(clock.nowNs(), 8);
  const connection = new FakeConnection(TARGET.address, { progress() {}, ended() {} });
  connection.admit(credit);
  link.connection = connection;
  link.liveNs = clock.nowNs();
  let id = 0;
  return {
    clock,
    story,
    times,
    card,
    copies,
    link,
    connection,
    offer(priorityLamports = 0) {
      id += 1;
      const packet = { ...packetOf(id, Uint8Array.of(id)), priorityLamports };
      return copies.offer(link, packet, TARGET, clock.nowNs());
    },
    drain: () => copies.drain(link, clock.nowNs()),
  };
}

describe("copies without credit", () => {
  it("go best paid first once there is some", () => {
    const { offer, connection, drain, story } = setUp();
    for (const lamports of [10, 30, 20]) offer(lamports);
    connection.credit = 2;
    drain();
    expect(story).toEqual(["2 sent", "3 sent"]);
  });

  it("wait with the engine for no longer than what is left of their time", () => {
    const { offer, clock, connection, drain } = setUp();
    offer();
    clock.advance(300);
    offer();
    clock.advance(200);
    connection.credit = 3;
    drain();
    offer();
    expect(connection.ttlsMs).toEqual([300, 600, undefined]);
  });

  it("give way in a full queue to what pays more, and to nothing else", () => {
    const { offer, story, card } = setUp();
    for (const lamports of [10, 30, 20]) offer(lamports);
    expect(offer(10)).toBe("leader_saturated");
    expect(story).toEqual([]);
    expect(offer(11)).toBe("taken");
    expect(story).toEqual(["1 leader_saturated"]);
    expect(card.saturated).toBe(2);
  });

  it("are dropped as saturated when they have waited as long as they are of use", () => {
    const { offer, clock, connection, drain, story } = setUp();
    offer(5);
    clock.advance(400);
    offer(1);
    clock.advance(400);
    connection.credit = 2;
    drain();
    expect(story).toEqual(["1 leader_saturated", "2 sent"]);
  });
});

describe("a leader that reads slowly", () => {
  it("is given what it reads, so that what pays more can still overtake", () => {
    const { offer, clock, connection, copies, drain, story } = setUp(128, 128);
    copies.window.granted(128);
    // Always more than it takes; 20 streams are granted in each 100 ms.
    for (let step = 0; step < 60; step += 1) {
      for (let count = 0; count < 20; count += 1) offer(1);
      clock.advance(50);
      connection.credit = Math.min(128, connection.credit + 10);
      drain();
    }
    expect(copies.window.limit).toBeGreaterThan(20);
    expect(128 - connection.credit).toBeLessThan(64);
    const [before] = [story.filter((it) => it.endsWith(" sent")).length];
    offer(99);
    clock.advance(50);
    connection.credit += 10;
    drain();
    const sent = story.filter((it) => it.endsWith(" sent"));
    expect(sent[before]).toBe("1201 sent");
  });

  it("is given all that it grants again when nothing has waited for ten seconds", () => {
    const { offer, clock, connection, copies, drain } = setUp(128, 128);
    copies.window.granted(128);
    const burst = (count: number): number => {
      const before = connection.sent.length;
      for (let offered = 0; offered < count; offered += 1) offer(1);
      return connection.sent.length - before;
    };
    for (let step = 0; step < 20; step += 1) {
      burst(20);
      clock.advance(50);
      connection.credit = Math.min(128, connection.credit + 10);
      drain();
    }
    const rest = (ms: number): void => {
      for (let waited = 0; waited < ms; waited += 250) {
        clock.advance(250);
        connection.credit = 128;
        copies.expire(clock.nowNs(), true);
        drain();
      }
    };
    rest(2_000);
    expect(burst(100)).toBeLessThan(60);
    rest(12_000);
    expect(burst(100)).toBe(100);
    // And is not taken for a slow one at once by what waits for a moment.
    rest(250);
    connection.credit = 0;
    burst(1);
    clock.advance(50);
    drain();
    expect(copies.window.limit).toBe(0);
  });

  it("is tried again, however rarely a copy comes, when it grants less than it did", () => {
    const { offer, clock, connection, copies, drain } = setUp(0, 128);
    copies.window.granted(800);
    for (let step = 0; step < 20; step += 1) {
      offer(1);
      clock.advance(50);
      drain();
    }
    connection.credit = 128;
    for (let step = 0; step < 4; step += 1) {
      offer(1);
      for (let waited = 0; waited < 2_000; waited += 50) {
        clock.advance(50);
        copies.expire(clock.nowNs(), true);
        drain();
      }
    }
    expect(connection.sent.length).toBeGreaterThan(0);
  });
});

describe("what is in flight", () => {
  it("is lost or cut with its connection", () => {
    const { offer, copies, link, story } = setUp(2);
    offer();
    copies.lose(link);
    offer();
    copies.cut(link);
    expect(story).toEqual(["1 sent", "1 connection_lost", "2 sent", "2 shutting_down"]);
  });

  it("is told of with the moment at which the engine sent it and was answered", () => {
    const { offer, clock, connection, copies, link, story, times } = setUp(2);
    connection.delay(0);
    offer();
    clock.advance(50);
    Object.assign(connection, { sentNs: clock.nowNs() - 40e6, endNs: clock.nowNs() - 10e6 });
    connection.ack(0);
    copies.settle(link, clock.nowNs());
    expect(story).toEqual(["1 sent", "1 acked"]);
    expect(times).toEqual([clock.nowNs() - 40e6, clock.nowNs() - 10e6]);
  });

  it("is never acknowledged before it was sent, though another thread was quicker", () => {
    const { offer, clock, connection, copies, link, story, times } = setUp(2);
    offer();
    connection.endNs = clock.nowNs() - 5;
    connection.ack(0);
    copies.settle(link, clock.nowNs());
    expect(story).toEqual(["1 sent", "1 acked"]);
    expect(times).toEqual([clock.nowNs(), clock.nowNs()]);
  });

  it("tells the card how long it took, the wait for credit included", () => {
    const { offer, clock, connection, copies, link, drain, card } = setUp();
    offer();
    clock.advance(30);
    connection.credit = 1;
    drain();
    clock.advance(20);
    connection.ack(0);
    copies.settle(link, clock.nowNs());
    expect(card.neededUs * 1000).toBe(50 * NS_PER_MS);
    expect(card.acked).toBe(1);
  });
});
