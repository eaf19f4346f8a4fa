/**
 * Sends of threads besides the sender's, on the real engine, to leaders over real QUIC, and how the
 * sender records them: each delivery is reported to its end exactly once.
 */

import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import type { Outcome } from "../../src/core/flow.ts";
import type { LeaderBehaviour } from "../../src/sandbox/leader.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import type { SendRecord } from "../../src/send/native/send-record.ts";
import { newSendRecord } from "../../src/send/native/send-record.ts";
import { TargetTable } from "../../src/send/native/target-table.ts";
import { createNativeTransport } from "../../src/send/native/transport-native.ts";
import { createSender } from "../../src/send/sender.ts";
import { startLeader, type TestLeader } from "../send/loopback.ts";
import { NO_SUBMISSIONS } from "../send/native-fixture.ts";
import { createIngressSender, type DrainHooks, withDrainHooks } from "../support/ingress-sender.ts";
import { acceptAndReport, packetOf } from "../support/packets.ts";
import { TestTargets } from "../support/target-table.ts";
import { until } from "../support/wait.ts";
import { native } from "./addon.ts";

const LEADERS = 2;
const COPY_TTL_MS = 400;
/** Deliveries that may be on their way at once; the queue of each leader is longer. */
const ROOM = 100;
const log = { info() {}, warn() {}, error() {} };

/** The record of one transaction by an ingress thread. */
interface SendReport {
  readonly id: number;
  readonly bytes: Uint8Array;
  readonly sent: SendRecord;
  readonly sentNs: number;
}

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

/** Leaders, a sender that is connected to all of them, and its reports for each packet. */
async function startSender(behaviour: Partial<LeaderBehaviour> = {}) {
  if (native === null) throw new Error("the native engine is not built");
  const leaders: TestLeader[] = [];
  for (let count = 0; count < LEADERS; count += 1) {
    const leader = await startLeader(behaviour);
    endings.push(() => leader.leader.stop());
    leaders.push(leader);
  }
  const testTargets = new TestTargets(native);
  const targetTable = new TargetTable(testTargets);
  const shared = { targetTable, submissions: NO_SUBMISSIONS };
  const hooks: DrainHooks = { beforeDrain() {} };
  const transport = createNativeTransport(
    { native: withDrainHooks(native, hooks), identity: freshIdentity(), log, shared },
    {
      binds: ["127.0.0.1:0"],
      busyPollUs: 0,
      idleTimeoutMs: 10_000,
      keepAliveMs: 4_000,
      admissionTimeoutMs: 10_000,
      queuePerLeader: 128,
      deliveryTtlMs: COPY_TTL_MS,
    },
  );
  const outcomes: Outcome[] = [];
  const onOutcome = (outcome: Outcome): void => void outcomes.push(outcome);
  const sender = createSender(
    { clock: systemClock, transport, onOutcome, log, targetTable },
    { deliveryTtlMs: COPY_TTL_MS },
  );
  const targets = leaders.map(({ address }, index) => ({
    identity: `leader ${index}`,
    address,
    slot: 0,
  }));
  sender.usePlan({ slot: 0, send: targets, warm: targets });
  await sender.start();
  endings.push(() => sender.stop());
  await until("every connection", () => sender.sendableCount === LEADERS);
  return { leaders, testTargets, hooks, transport, sender, outcomes };
}

async function setUp(behaviour: Partial<LeaderBehaviour> = {}) {
  const parts = await startSender(behaviour);
  const { outcomes, sender, testTargets } = parts;
  /** Records of ingress threads that the sender has not read yet. */
  const reports: SendReport[] = [];
  const refused: SendReport[] = [];
  return {
    ...parts,
    reports,
    refused,
    recordAll(): void {
      for (const { id, bytes, sent, sentNs } of reports.splice(0)) {
        sender.recordSend(packetOf(id, bytes), sent, sentNs);
      }
    },
    /** An ingress thread: each call sends one transaction. */
    ingressThread(): (id: number) => void {
      if (native === null) throw new Error("the native engine is not built");
      const thread = createIngressSender(native, testTargets);
      return (id) => {
        const [bytes, sent] = [Uint8Array.of(id >> 16, id >> 8, id), newSendRecord()];
        const list = thread.send(bytes, sent) ? reports : refused;
        list.push({ id, bytes, sent, sentNs: systemClock.nowNs() });
      };
    },
    /** The reports of each delivery, in order, by packet and leader. */
    stories(): readonly string[] {
      const kindsByDelivery = new Map<string, string[]>();
      for (const { packetId, identity, kind, reason } of outcomes) {
        const key = `${packetId} ${identity}`;
        kindsByDelivery.set(key, [...(kindsByDelivery.get(key) ?? []), reason ?? kind]);
      }
      return [...kindsByDelivery.values()].map((kinds) => kinds.join(" "));
    },
    ended: () => outcomes.filter(({ kind }) => kind !== "sent").length,
  };
}

/** Calls `act` with each of these numbers, one in each turn of the event loop. */
async function inTurns(from: number, count: number, act: (id: number) => unknown): Promise<void> {
  for (let id = from; id < from + count; id += 1) {
    await act(id);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe.skipIf(native === null)("a send of an ingress thread", () => {
  it("is acknowledged once by each leader, recorded as the engine's events arrive", async () => {
    const fixture = await setUp();
    fixture.hooks.beforeDrain = fixture.recordAll;
    await inTurns(1, 50, fixture.ingressThread());
    await until(
      "every report",
      () => fixture.outcomes.length > 0 && fixture.ended() === 50 * LEADERS,
    );
    expect(fixture.refused).toEqual([]);
    expect(fixture.stories()).toEqual(Array(50 * LEADERS).fill("sent acked"));
    expect(fixture.leaders.map(({ received }) => received.length)).toEqual([50, 50]);
    expect(fixture.sender.counters).toMatchObject({
      packetsAccepted: 50,
      deliveries: 100,
      deliveriesAcked: 100,
    });
  });

  it("waits in the engine where a leader grants no streams, and none is refused", async () => {
    const fixture = await setUp({ reading: "stalled", streamsMax: 8 });
    fixture.hooks.beforeDrain = fixture.recordAll;
    await inTurns(1, 60, fixture.ingressThread());
    expect(fixture.refused).toEqual([]);
    await until("every end", () => fixture.ended() === 60 * LEADERS);
    const stories = fixture.stories();
    expect(stories).toHaveLength(60 * LEADERS);
    expect(stories.filter((story) => story === "sent acked")).toHaveLength(8 * LEADERS);
    expect(stories.filter((story) => story === "leader_saturated")).toHaveLength(52 * LEADERS);
  });

  it("uses its own streams, next to other ingress threads and the sender", async () => {
    const fixture = await setUp();
    fixture.hooks.beforeDrain = fixture.recordAll;
    const count = 300;
    const threads = [fixture.ingressThread(), fixture.ingressThread()];
    let sent = 0;
    await inTurns(1, count, async (id) => {
      // No queue may be full: what it has no room for gets no delivery.
      await until("room", () => sent - fixture.ended() < ROOM);
      sent += 3 * LEADERS;
      for (const [index, send] of threads.entries()) send(id + index * 10_000);
      acceptAndReport(fixture.sender, packetOf(50_000 + id, Uint8Array.of(id >> 8, id)));
    });
    await until("every end", () => fixture.ended() === 3 * count * LEADERS);
    expect(fixture.refused).toEqual([]);
    expect(fixture.stories()).toHaveLength(3 * count * LEADERS);
    expect(new Set(fixture.stories())).toEqual(new Set(["sent acked"]));
    for (const { received } of fixture.leaders) expect(received).toHaveLength(3 * count);
  });
});
