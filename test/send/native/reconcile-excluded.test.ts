/**
 * Backlogged leaders while ingress threads send: what ingress threads and the sender do.
 */

import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../../src/core/clock.ts";
import { SHARED_TARGETS_MAX } from "../../../src/core/limits.ts";
import { RECORD_DELAY_MS_MAX, TARGET_EXCLUDED_MS_MIN } from "../../../src/send/limits.ts";
import { packetOf } from "../../support/packets.ts";
import { planOf } from "../rig.ts";
import { A, B, BYTES, C, live, setUp } from "./reconcile-rig.ts";

describe("fronts", () => {
  it("exclude a backlogged leader, and continue with the others", async () => {
    const rig = await live();
    const a = rig.transport.to(A);
    a.credit = 0;
    expect([rig.sendAsIngress()?.count, rig.sender.accept(packetOf(1, BYTES))]).toEqual([2, 2]);
    expect([rig.sendAsIngress(1)?.count, rig.engine.peers]).toEqual([1, [2]]);
    expect([rig.sender.excludedCount, rig.needsImmediateWake()]).toEqual([1, true]);
    a.grant(5);
    rig.check();
    expect(rig.sendAsIngress(1)?.count).toBe(1);
    rig.clock.advance(TARGET_EXCLUDED_MS_MIN);
    rig.check();
    expect([rig.sendAsIngress()?.count, rig.engine.peers]).toEqual([2, [1, 2]]);
    expect([rig.sender.excludedCount, rig.needsImmediateWake()]).toEqual([0, false]);
  });

  it("exclude a leader with many deliveries queued in the engine, also shortly after", async () => {
    const rig = await live();
    const a = rig.transport.to(A);
    a.isBacklogged = true;
    rig.check();
    expect([rig.sendAsIngress(1)?.count, rig.engine.peers]).toEqual([1, [2]]);
    rig.clock.advance(TARGET_EXCLUDED_MS_MIN - 1);
    rig.check();
    a.isBacklogged = false;
    rig.clock.advance(TARGET_EXCLUDED_MS_MIN - 1);
    rig.check();
    expect(rig.sendAsIngress(1)?.count).toBe(1);
    rig.clock.advance(1);
    rig.check();
    expect(rig.sendAsIngress()?.count).toBe(2);
  });

  it("send nothing while every leader is backlogged", async () => {
    const rig = await live();
    for (const address of [A, B]) rig.transport.to(address).isBacklogged = true;
    rig.check();
    expect([rig.sendAsIngress(), rig.sender.excludedCount]).toEqual([null, 2]);
    rig.transport.to(A).isBacklogged = false;
    rig.check();
    expect([rig.sendAsIngress(), rig.sender.excludedCount]).toEqual([null, 2]);
    rig.transport.to(B).isBacklogged = false;
    rig.check();
    expect([rig.sendAsIngress()?.count, rig.sender.excludedCount]).toEqual([2, 0]);
  });

  it("use the first leader without a backlog for a while", async () => {
    const rig = await live();
    for (const address of [A, B]) rig.transport.to(address).isBacklogged = true;
    rig.check();
    rig.transport.to(A).isBacklogged = false;
    rig.clock.advance(TARGET_EXCLUDED_MS_MIN);
    rig.check();
    expect([rig.sendAsIngress(1)?.count, rig.engine.peers, rig.sender.excludedCount]).toEqual([
      1,
      [1],
      1,
    ]);
  });

  it("use recently backlogged leaders when a new plan has no others", async () => {
    const rig = await live();
    for (const address of [A, B]) rig.transport.to(address).isBacklogged = true;
    rig.check();
    rig.sender.usePlan(planOf([B, A]));
    expect(rig.sendAsIngress()).toBeNull();
    rig.transport.to(B).isBacklogged = false;
    rig.check();
    expect([rig.sendAsIngress(1)?.count, rig.engine.peers]).toEqual([1, [2]]);
  });

  it("exclude a recently backlogged leader across a new connection and plan", async () => {
    const rig = await live();
    rig.transport.to(A).isBacklogged = true;
    rig.check();
    rig.sender.usePlan(planOf([C, A, B]));
    rig.transport.to(A).isBacklogged = false;
    rig.transport.to(C).admit();
    rig.check();
    expect([rig.sendAsIngress()?.count, rig.engine.peers]).toEqual([2, [3, 2]]);
    rig.clock.advance(1_000);
    rig.check();
    expect([rig.sendAsIngress(0b111)?.count, rig.engine.peers]).toEqual([3, [3, 1, 2]]);
  });

  it("exclude a leader whose read rate was limited", async () => {
    const rig = await live();
    const a = rig.transport.to(A);
    a.credit = 0;
    rig.sender.accept(packetOf(99, BYTES));
    for (let round = 0; round < 30; round += 1) {
      rig.sender.accept(packetOf(1 + round, BYTES));
      rig.clock.advance(20);
      a.grant(1);
    }
    a.grant(1_000);
    rig.check();
    expect([rig.sender.leaders()[0]?.queued, rig.sendAsIngress(1)?.count]).toEqual([0, 1]);
    rig.clock.advance(11_000);
    expect(rig.sendAsIngress()?.count).toBe(2);
  });

  it("with queued deliveries continue without that leader while it is backlogged", async () => {
    const rig = await live();
    const sends = Array.from({ length: 16 }, () => rig.send(0b01 | (1 << 17)));
    rig.transport.to(B).isBacklogged = true;
    for (const sent of sends) sent.recordSend();
    expect([rig.sendAsIngress(1)?.count, rig.engine.peers]).toEqual([1, [1]]);
  });
});

describe("a leader excluded from ingress threads", () => {
  it("gets its deliveries from the sender, each once and in priority order", async () => {
    const rig = await live();
    const a = rig.transport.to(A);
    a.credit = 0;
    rig.sender.accept(packetOf(1, BYTES));
    const sends = [3, 9, 5].map((lamports) => rig.send(1, lamports));
    for (const sent of sends) sent.recordSend();
    expect(rig.sender.leaders()[0]?.queued).toBe(4);
    const sentTo = (address: string): number[] =>
      rig.outcomes
        .filter((it) => it.address === address && it.kind === "sent")
        .map(({ packetId }) => packetId);
    const ids = sends.map(({ id }) => id);
    expect([sentTo(A), sentTo(B)]).toEqual([[], [1, ...ids]]);
    rig.clock.advance(10);
    a.grant(1_000);
    expect(sentTo(A)).toEqual([ids[1], ids[2], ids[0], 1]);
    expect(rig.sender.counters).toMatchObject({
      packetsAccepted: 4,
      deliveries: 8,
      deliveriesSent: 8,
    });
    expect(a.sent).toHaveLength(4);
  });

  it("gets no second delivery of a packet sent to it by an older version", async () => {
    const rig = await live();
    const before = rig.send();
    const a = rig.transport.to(A);
    a.isBacklogged = true;
    rig.check();
    const after = rig.send(1);
    before.recordSend();
    after.recordSend();
    // The ingress thread sent the first delivery itself.
    expect(a.sent).toEqual([BYTES]);
    expect([rig.story(before.id, A), rig.story(after.id, A)]).toEqual([["sent"], ["sent"]]);
  });

  it("with a full queue has the lowest priority dropped and reported", async () => {
    const rig = await live(undefined, { queuePerPeer: 1 });
    rig.transport.to(A).credit = 0;
    rig.sender.accept(packetOf(1, BYTES));
    const cheap = rig.send(1, 0);
    cheap.recordSend();
    expect(rig.story(cheap.id, A)).toEqual(["dropped:leader_saturated"]);
    expect(rig.story(cheap.id, B)).toEqual(["sent"]);
  });
});

describe("16 leaders that are backlogged as often as possible", () => {
  it("exhaust no version for which a record may still arrive", async () => {
    const all = Array.from({ length: SHARED_TARGETS_MAX }, (_, n) => `10.0.2.${n}:8009`);
    const rig = await setUp(planOf(all));
    for (const address of all) rig.transport.to(address).admit();
    rig.check();
    const records: { readonly dueNs: number; readonly recordSend: () => void }[] = [];
    for (let step = 0; step < 1_000; step += 1) {
      if (step % 8 === 0) rig.sender.usePlan(planOf(all));
      const recordSend = rig.trySend(2 ** 16 - 1);
      const dueNs = rig.clock.nowNs() + RECORD_DELAY_MS_MAX * NS_PER_MS;
      if (recordSend !== null) {
        records.push({ dueNs, recordSend });
        // All but one in turn: excluded, and ready to be included before the second check.
        const { peers } = rig.engine;
        const connection = peers.length > 1 ? rig.transport.made[(peers[0] ?? 0) - 1] : undefined;
        if (connection !== undefined) connection.isBacklogged = true;
        rig.check();
        if (connection !== undefined) connection.isBacklogged = false;
      }
      rig.clock.advance(2);
      rig.check();
      while ((records[0]?.dueNs ?? Number.POSITIVE_INFINITY) <= rig.clock.nowNs()) {
        records.shift()?.recordSend();
      }
    }
    expect(rig.sender.counters.packetsAccepted).toBeGreaterThan(100);
    expect(rig.sender.counters.packetsRecordedLate).toBe(0);
  });
});
