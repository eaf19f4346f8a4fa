import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { Deliveries } from "../../src/send/deliveries.ts";
import { LeaderConnection } from "../../src/send/leader-connection.ts";
import { LeaderStats } from "../../src/send/leader-stats.ts";
import { newSendCounters } from "../../src/send/send-counters.ts";
import { SATURATED } from "../../src/send/transport.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { FakeConnection, NO_EVENTS } from "../support/fake-transport.ts";
import { packetOf } from "../support/packets.ts";

const TARGET = { identity: "leader", address: "10.0.0.1:8009", slot: 7 };

const landedShareOf = (account: string): number => (account === "never" ? 0.02 : 1);

function setUp(credit = 0, queuePerLeader = 3) {
  const clock = createFakeClock();
  const story: string[] = [];
  const times: (number | undefined)[] = [];
  const stats = new LeaderStats(TARGET.identity, TARGET.address);
  const deliveries = new Deliveries(
    stats,
    {
      clock,
      counters: newSendCounters(),
      report: (packetId, _target, kind, reason, _rttUs, _ageMs, resend, atNs) => {
        story.push(`${packetId} ${reason ?? kind}${resend > 0 ? ` again ${resend}` : ""}`);
        times.push(atNs);
      },
    },
    { queuePerLeader, deliveryTtlMs: 800, landedShareOf },
  );
  const connection = new LeaderConnection(clock.nowNs(), 8);
  const engineConnection = new FakeConnection(TARGET.address, {
    ...NO_EVENTS,
    result: (...result) => deliveries.result(connection, ...result),
  });
  engineConnection.nowNs = () => clock.nowNs();
  engineConnection.admit(credit);
  connection.engineConnection = engineConnection;
  connection.liveNs = clock.nowNs();
  let id = 0;
  return {
    clock,
    story,
    times,
    stats,
    deliveries,
    connection,
    engineConnection,
    trySend(offeredLamports = 0, account = "lands") {
      id += 1;
      const packet = { ...packetOf(id, Uint8Array.of(id)), offeredLamports, account };
      const result = deliveries.trySend(connection, packet, TARGET, clock.nowNs());
      if (result === "accepted") deliveries.reportSent(connection, packet, TARGET, clock.nowNs());
      return result;
    },
    resend(id: number, offeredLamports: number, account = "lands") {
      const packet = { ...packetOf(id, Uint8Array.of(id)), offeredLamports, account };
      return deliveries.resend(connection, packet, TARGET, clock.nowNs(), 2);
    },
    drain: () => deliveries.drain(connection, clock.nowNs()),
  };
}

describe("deliveries without credit", () => {
  it("are not displaced by a higher offer of an account that lands too little", () => {
    const { trySend, story } = setUp(0, 1);
    expect(trySend(20)).toBe("accepted");
    expect(trySend(1_000, "never")).toBe("leader_saturated");
    expect(trySend(1_001, "never")).toBe("accepted");
    expect(story).toEqual(["1 leader_saturated"]);
  });

  it("are sent in priority order once there is some", () => {
    const { trySend, engineConnection, drain, story } = setUp();
    for (const lamports of [10, 30, 20]) trySend(lamports);
    engineConnection.credit = 2;
    drain();
    expect(story).toEqual(["2 sent", "3 sent"]);
  });

  it("are queued in the engine for no longer than the rest of their TTL", () => {
    const { trySend, clock, engineConnection, drain } = setUp();
    trySend();
    clock.advance(300);
    trySend();
    clock.advance(200);
    engineConnection.credit = 3;
    drain();
    trySend();
    expect(engineConnection.ttlsMs).toEqual([300, 600, undefined]);
  });

  it("are evicted from a full queue only by a higher priority", () => {
    const { trySend, story, stats } = setUp();
    for (const lamports of [10, 30, 20]) trySend(lamports);
    expect(trySend(10)).toBe("leader_saturated");
    expect(story).toEqual([]);
    expect(trySend(11)).toBe("accepted");
    expect(story).toEqual(["1 leader_saturated"]);
    expect(stats.saturated).toBe(2);
  });

  it("are dropped as saturated after their TTL", () => {
    const { trySend, clock, engineConnection, drain, story } = setUp();
    trySend(5);
    clock.advance(400);
    trySend(1);
    clock.advance(400);
    engineConnection.credit = 2;
    drain();
    expect(story).toEqual(["1 leader_saturated", "2 sent"]);
  });
});

describe("resends without credit", () => {
  it("leave before first sends of a lower rank, and after those of a higher or the same", () => {
    const { trySend, resend, engineConnection, drain, story } = setUp(0, 9);
    for (const lamports of [10, 30, 20]) trySend(lamports);
    expect([resend(7, 20), resend(8, 1_000, "never"), resend(9, 31)]).toEqual(
      Array(3).fill("queued"),
    );
    engineConnection.credit = 6;
    drain();
    const [paysMost, ...rest] = ["9 sent again 2", "2 sent", "3 sent"];
    expect(story).toEqual([paysMost, ...rest, "7 sent again 2", "8 sent again 2", "1 sent"]);
  });

  it("are queued also where the one before was sent", () => {
    const { resend } = setUp(1, 9);
    expect([resend(7, 5), resend(8, 5)]).toEqual(["sent", "queued"]);
  });

  it("displace from a full queue only what has a lower rank", () => {
    const { trySend, resend, story } = setUp(0, 1);
    trySend(20);
    expect([resend(7, 20), resend(7, 21)]).toEqual(["refused", "queued"]);
    expect(story).toEqual(["1 leader_saturated"]);
    expect(trySend(22)).toBe("accepted");
    expect(story).toEqual(["1 leader_saturated", "7 leader_saturated again 2"]);
  });

  it("wait no longer than first sends, by their rank however many there are", () => {
    const { resend, clock, drain, story } = setUp(0, 99);
    for (let count = 0; count < 99; count += 1) expect(resend(7, 5)).toBe("queued");
    expect([resend(8, 5), resend(9, 6)]).toEqual(["refused", "queued"]);
    clock.advance(800);
    drain();
    expect(story).toHaveLength(100);
    expect(story.at(-1)).toContain("leader_saturated again 2");
  });

  it("are evidence that the leader is slow, as first sends are", () => {
    const { resend, deliveries } = setUp(0, 9);
    let blocked = 0;
    deliveries.window.recordBlocked = () => {
      blocked += 1;
    };
    resend(7, 5);
    expect(blocked).toBe(1);
  });
});

describe("deliveries of an engine with a queue of its own", () => {
  it("are passed on with what ranks them, however many wait", () => {
    const { trySend, engineConnection, deliveries, story } = setUp(9, 3);
    for (let stream = 0; stream < 8; stream += 1) engineConnection.delay(stream);
    for (let count = 0; count < 8; count += 1) expect(trySend(count)).toBe("accepted");
    const offered = engineConnection.offers.map(({ offeredLamports }) => offeredLamports);
    expect(offered).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(engineConnection.offers[0]?.account).toBe("lands");
    expect([deliveries.queued, story]).toEqual([0, []]);
  });

  it("are refused as saturated when it takes none, and counted", () => {
    const { trySend, engineConnection, stats, story } = setUp(9);
    engineConnection.result = SATURATED;
    expect(trySend(1)).toBe("leader_saturated");
    expect([stats.saturated, story]).toEqual([1, []]);
  });

  it("that waited for the connection are dropped as saturated when it takes none", () => {
    const { trySend, engineConnection, drain, deliveries, story } = setUp(0);
    trySend(1);
    engineConnection.result = SATURATED;
    drain();
    expect([story, deliveries.queued]).toEqual([["1 leader_saturated"], 0]);
  });

  it("of a resend are passed on with its rank", () => {
    const { engineConnection, resend, story } = setUp(9);
    engineConnection.delay(1);
    expect([resend(7, 5, "never"), resend(8, 6)]).toEqual(["sent", "queued"]);
    expect(engineConnection.offers).toMatchObject([
      { account: "never", offeredLamports: 5 },
      { account: "lands", offeredLamports: 6 },
    ]);
    expect(story).toEqual(["7 sent again 2"]);
  });

  it("of a resend are refused when it takes none, and nothing is reported", () => {
    const { engineConnection, resend, stats, story } = setUp(9);
    engineConnection.result = SATURATED;
    expect([resend(7, 5), stats.saturated, story]).toEqual(["refused", 0, []]);
  });
});

describe("a leader that reads slowly", () => {
  it("is given only what it reads, so that higher priorities can still overtake", () => {
    const { trySend, clock, engineConnection, deliveries, drain, story } = setUp(128, 128);
    deliveries.window.setCredit(128);
    // Always more than it accepts; 20 streams are granted per 100 ms.
    for (let step = 0; step < 60; step += 1) {
      for (let count = 0; count < 20; count += 1) trySend(1);
      clock.advance(50);
      engineConnection.credit = Math.min(128, engineConnection.credit + 10);
      drain();
    }
    expect(deliveries.window.limit).toBeGreaterThan(20);
    expect(128 - engineConnection.credit).toBeLessThan(64);
    const [before] = [story.filter((it) => it.endsWith(" sent")).length];
    trySend(99);
    clock.advance(50);
    engineConnection.credit += 10;
    drain();
    const sent = story.filter((it) => it.endsWith(" sent"));
    expect(sent[before]).toBe("1201 sent");
  });

  it("is given its full grant again after ten seconds without a queue", () => {
    const { trySend, clock, engineConnection, deliveries, drain } = setUp(128, 128);
    deliveries.window.setCredit(128);
    const burst = (count: number): number => {
      const before = engineConnection.sent.length;
      for (let offered = 0; offered < count; offered += 1) trySend(1);
      return engineConnection.sent.length - before;
    };
    for (let step = 0; step < 20; step += 1) {
      burst(20);
      clock.advance(50);
      engineConnection.credit = Math.min(128, engineConnection.credit + 10);
      drain();
    }
    const rest = (ms: number): void => {
      for (let waited = 0; waited < ms; waited += 250) {
        clock.advance(250);
        engineConnection.credit = 128;
        deliveries.expire(clock.nowNs(), true);
        drain();
      }
    };
    rest(2_000);
    expect(burst(100)).toBeLessThan(60);
    rest(12_000);
    expect(burst(100)).toBe(100);
    // A short queue does not make it count as slow immediately.
    rest(250);
    engineConnection.credit = 0;
    burst(1);
    clock.advance(50);
    drain();
    expect(deliveries.window.limit).toBe(0);
  });

  it("is tried again, even at a low rate, when it grants less than before", () => {
    const { trySend, clock, engineConnection, deliveries, drain } = setUp(0, 128);
    deliveries.window.setCredit(800);
    for (let step = 0; step < 20; step += 1) {
      trySend(1);
      clock.advance(50);
      drain();
    }
    engineConnection.credit = 128;
    for (let step = 0; step < 4; step += 1) {
      trySend(1);
      for (let waited = 0; waited < 2_000; waited += 50) {
        clock.advance(50);
        deliveries.expire(clock.nowNs(), true);
        drain();
      }
    }
    expect(engineConnection.sent.length).toBeGreaterThan(0);
  });
});

describe("a delivery in flight", () => {
  it("is lost or cut with its connection", () => {
    const { trySend, deliveries, connection, story } = setUp(2);
    trySend();
    deliveries.lose(connection);
    trySend();
    deliveries.cut(connection);
    expect(story).toEqual(["1 sent", "1 connection_lost", "2 sent", "2 shutting_down"]);
  });

  it("is reported with the times of its send and its acknowledgement", () => {
    const { trySend, clock, engineConnection, story, times } = setUp(2);
    engineConnection.delay(0);
    trySend();
    expect(story).toEqual([]);
    clock.advance(50);
    const [sentNs, ackedNs] = [clock.nowNs() - 40e6, clock.nowNs() - 10e6];
    engineConnection.nowNs = () => sentNs;
    engineConnection.sendQueued(0);
    engineConnection.nowNs = () => ackedNs;
    engineConnection.ack(0);
    expect(story).toEqual(["1 sent", "1 acked"]);
    expect(times).toEqual([sentNs, ackedNs]);
  });

  it("is sent when it is acknowledged, though the engine lost the event of that", () => {
    const { trySend, engineConnection, story } = setUp(2);
    engineConnection.delay(0);
    trySend();
    engineConnection.ack(0);
    expect(story).toEqual(["1 sent", "1 acked"]);
  });

  it("is reported in the order of the engine's events, once each", () => {
    const { trySend, engineConnection, story, connection } = setUp(9);
    for (const number of [1, 2]) engineConnection.delay(number);
    for (let count = 0; count < 5; count += 1) trySend();
    engineConnection.refuse(2, 2);
    engineConnection.ack(3);
    engineConnection.sendQueued(1);
    engineConnection.stop(0);
    for (const number of [3, 0, 2, 99]) engineConnection.ack(number);
    expect(story).toEqual([
      ...["1 sent", "4 sent", "5 sent"],
      ...["3 leader_saturated", "4 acked", "2 sent", "1 stream_stopped"],
    ]);
    expect([connection.deliveries.onWire, connection.deliveries.waiting]).toEqual([2, 0]);
  });

  it("is never acknowledged before it was sent, though another thread was faster", () => {
    const { trySend, clock, engineConnection, story, times } = setUp(2);
    trySend();
    engineConnection.nowNs = () => clock.nowNs() - 5;
    engineConnection.ack(0);
    expect(story).toEqual(["1 sent", "1 acked"]);
    expect(times).toEqual([clock.nowNs(), clock.nowNs()]);
  });

  it("records in the leader stats how long it took, including the wait for credit", () => {
    const { trySend, clock, engineConnection, drain, stats } = setUp();
    trySend();
    clock.advance(30);
    engineConnection.credit = 1;
    drain();
    clock.advance(20);
    engineConnection.ack(0);
    expect(stats.neededUs * 1000).toBe(50 * NS_PER_MS);
    expect(stats.acked).toBe(1);
  });
});
