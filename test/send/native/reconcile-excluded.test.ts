/**
 * Backlogged leaders while ingress threads send: what ingress threads and the sender do.
 */

import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../../src/core/clock.ts";
import { SHARED_TARGETS_MAX } from "../../../src/core/limits.ts";
import { RETIRING_MS, TARGET_EXCLUDED_MS_MIN } from "../../../src/send/limits.ts";
import { packetOf } from "../../support/packets.ts";
import { planOf } from "../fixture.ts";
import { A, B, BYTES, C, live, setUp } from "./reconcile-fixture.ts";

describe("ingress threads", () => {
  it("exclude a backlogged leader, and continue with the others", async () => {
    const fixture = await live();
    const a = fixture.transport.to(A);
    a.credit = 0;
    expect([fixture.sendAsIngress()?.count, fixture.sender.accept(packetOf(1, BYTES))]).toEqual([
      2, 2,
    ]);
    expect([fixture.sendAsIngress(1)?.count, fixture.engine.peers]).toEqual([1, [2]]);
    expect([fixture.sender.excludedCount, fixture.needsImmediateWake()]).toEqual([1, true]);
    a.grant(5);
    fixture.check();
    expect(fixture.sendAsIngress(1)?.count).toBe(1);
    fixture.clock.advance(TARGET_EXCLUDED_MS_MIN);
    fixture.check();
    expect([fixture.sendAsIngress()?.count, fixture.engine.peers]).toEqual([2, [1, 2]]);
    expect([fixture.sender.excludedCount, fixture.needsImmediateWake()]).toEqual([0, false]);
  });

  it("exclude a leader with many deliveries queued in the engine, also shortly after", async () => {
    const fixture = await live();
    const a = fixture.transport.to(A);
    a.isBacklogged = true;
    fixture.check();
    expect([fixture.sendAsIngress(1)?.count, fixture.engine.peers]).toEqual([1, [2]]);
    fixture.clock.advance(TARGET_EXCLUDED_MS_MIN - 1);
    fixture.check();
    a.isBacklogged = false;
    fixture.clock.advance(TARGET_EXCLUDED_MS_MIN - 1);
    fixture.check();
    expect(fixture.sendAsIngress(1)?.count).toBe(1);
    fixture.clock.advance(1);
    fixture.check();
    expect(fixture.sendAsIngress()?.count).toBe(2);
  });

  it("send nothing while every leader is backlogged", async () => {
    const fixture = await live();
    for (const address of [A, B]) fixture.transport.to(address).isBacklogged = true;
    fixture.check();
    expect([fixture.sendAsIngress(), fixture.sender.excludedCount]).toEqual([null, 2]);
    fixture.transport.to(A).isBacklogged = false;
    fixture.check();
    expect([fixture.sendAsIngress(), fixture.sender.excludedCount]).toEqual([null, 2]);
    fixture.transport.to(B).isBacklogged = false;
    fixture.check();
    expect([fixture.sendAsIngress()?.count, fixture.sender.excludedCount]).toEqual([2, 0]);
  });

  it("use the first leader without a backlog for a while", async () => {
    const fixture = await live();
    for (const address of [A, B]) fixture.transport.to(address).isBacklogged = true;
    fixture.check();
    fixture.transport.to(A).isBacklogged = false;
    fixture.clock.advance(TARGET_EXCLUDED_MS_MIN);
    fixture.check();
    expect([
      fixture.sendAsIngress(1)?.count,
      fixture.engine.peers,
      fixture.sender.excludedCount,
    ]).toEqual([1, [1], 1]);
  });

  it("use recently backlogged leaders when a new plan has no others", async () => {
    const fixture = await live();
    for (const address of [A, B]) fixture.transport.to(address).isBacklogged = true;
    fixture.check();
    fixture.sender.usePlan(planOf([B, A]));
    expect(fixture.sendAsIngress()).toBeNull();
    fixture.transport.to(B).isBacklogged = false;
    fixture.check();
    expect([fixture.sendAsIngress(1)?.count, fixture.engine.peers]).toEqual([1, [2]]);
  });

  it("exclude a recently backlogged leader across a new connection and plan", async () => {
    const fixture = await live();
    fixture.transport.to(A).isBacklogged = true;
    fixture.check();
    fixture.sender.usePlan(planOf([C, A, B]));
    fixture.transport.to(A).isBacklogged = false;
    fixture.transport.to(C).admit();
    fixture.check();
    expect([fixture.sendAsIngress()?.count, fixture.engine.peers]).toEqual([2, [3, 2]]);
    fixture.clock.advance(1_000);
    fixture.check();
    expect([fixture.sendAsIngress(0b111)?.count, fixture.engine.peers]).toEqual([3, [3, 1, 2]]);
  });

  it("exclude a leader whose read rate was limited", async () => {
    const fixture = await live();
    const a = fixture.transport.to(A);
    a.credit = 0;
    fixture.sender.accept(packetOf(99, BYTES));
    for (let round = 0; round < 30; round += 1) {
      fixture.sender.accept(packetOf(1 + round, BYTES));
      fixture.clock.advance(20);
      a.grant(1);
    }
    a.grant(1_000);
    fixture.check();
    expect([fixture.sender.leaders()[0]?.queued, fixture.sendAsIngress(1)?.count]).toEqual([0, 1]);
    fixture.clock.advance(11_000);
    expect(fixture.sendAsIngress()?.count).toBe(2);
  });

  it("with queued deliveries continue without that leader while it is backlogged", async () => {
    const fixture = await live();
    const sends = Array.from({ length: 16 }, () => fixture.send(0b01 | (1 << 17)));
    fixture.transport.to(B).isBacklogged = true;
    for (const sent of sends) sent.recordSend();
    expect([fixture.sendAsIngress(1)?.count, fixture.engine.peers]).toEqual([1, [1]]);
  });
});

describe("a leader excluded from ingress threads", () => {
  it("gets its deliveries from the sender, each once and in priority order", async () => {
    const fixture = await live();
    const a = fixture.transport.to(A);
    a.credit = 0;
    fixture.sender.accept(packetOf(1, BYTES));
    const sends = [3, 9, 5].map((lamports) => fixture.send(1, lamports));
    for (const sent of sends) sent.recordSend();
    expect(fixture.sender.leaders()[0]?.queued).toBe(4);
    const sentTo = (address: string): number[] =>
      fixture.outcomes
        .filter((it) => it.address === address && it.kind === "sent")
        .map(({ packetId }) => packetId);
    const ids = sends.map(({ id }) => id);
    expect([sentTo(A), sentTo(B)]).toEqual([[], [1, ...ids]]);
    fixture.clock.advance(10);
    a.grant(1_000);
    expect(sentTo(A)).toEqual([ids[1], ids[2], ids[0], 1]);
    expect(fixture.sender.counters).toMatchObject({
      packetsAccepted: 4,
      deliveries: 8,
      deliveriesSent: 8,
    });
    expect(a.sent).toHaveLength(4);
  });

  it("gets no second delivery of a packet sent to it by an older version", async () => {
    const fixture = await live();
    const before = fixture.send();
    const a = fixture.transport.to(A);
    a.isBacklogged = true;
    fixture.check();
    const after = fixture.send(1);
    before.recordSend();
    after.recordSend();
    // The ingress thread sent the first delivery itself.
    expect(a.sent).toEqual([BYTES]);
    expect([fixture.story(before.id, A), fixture.story(after.id, A)]).toEqual([["sent"], ["sent"]]);
  });

  it("with a full queue has the lowest priority dropped and reported", async () => {
    const fixture = await live(undefined, { queuePerLeader: 1 });
    fixture.transport.to(A).credit = 0;
    fixture.sender.accept(packetOf(1, BYTES));
    const cheap = fixture.send(1, 0);
    cheap.recordSend();
    expect(fixture.story(cheap.id, A)).toEqual(["dropped:leader_saturated"]);
    expect(fixture.story(cheap.id, B)).toEqual(["sent"]);
  });
});

describe("16 leaders that are backlogged as often as possible", () => {
  it("exhaust no version for which a record may still arrive", async () => {
    const all = Array.from({ length: SHARED_TARGETS_MAX }, (_, n) => `10.0.2.${n}:8009`);
    const fixture = await setUp(planOf(all));
    for (const address of all) fixture.transport.to(address).admit();
    fixture.check();
    const records: { readonly dueNs: number; readonly recordSend: () => void }[] = [];
    for (let step = 0; step < 1_000; step += 1) {
      if (step % 8 === 0) fixture.sender.usePlan(planOf(all));
      const recordSend = fixture.trySend(2 ** 16 - 1);
      const dueNs = fixture.clock.nowNs() + RETIRING_MS * NS_PER_MS;
      if (recordSend !== null) {
        records.push({ dueNs, recordSend });
        // All but one in turn: excluded, and ready to be included before the second check.
        const { peers } = fixture.engine;
        const connection =
          peers.length > 1 ? fixture.transport.made[(peers[0] ?? 0) - 1] : undefined;
        if (connection !== undefined) connection.isBacklogged = true;
        fixture.check();
        if (connection !== undefined) connection.isBacklogged = false;
      }
      fixture.clock.advance(2);
      fixture.check();
      while ((records[0]?.dueNs ?? Number.POSITIVE_INFINITY) <= fixture.clock.nowNs()) {
        records.shift()?.recordSend();
      }
    }
    expect(fixture.sender.counters.packetsAccepted).toBeGreaterThan(100);
    expect(fixture.sender.counters.packetsRecordedLate).toBe(0);
  });
});
