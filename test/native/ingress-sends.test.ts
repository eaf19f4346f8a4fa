/**
 * Sends of threads besides the sender's, on the real engine, to leaders over real QUIC, and how the
 * sender records them: each delivery is reported to its end exactly once.
 */

import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import type { Outcome } from "../../src/core/flow.ts";
import type { LeaderBehaviour } from "../../src/sandbox/leader.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import type { SendRecord } from "../../src/send/native/send-record.ts";
import {
  SHARED_TARGET_TABLE_BYTES,
  SharedTargetTable,
} from "../../src/send/native/shared-target-table.ts";
import { createNativeTransport } from "../../src/send/native/transport-native.ts";
import { createSender } from "../../src/send/sender.ts";
import { startLeader, type TestLeader } from "../send/loopback.ts";
import { packetOf } from "../support/packets.ts";
import { everyMoment, until } from "../support/wait.ts";
import { native } from "./addon.ts";

const LEADERS = 2;
const COPY_TTL_MS = 400;
/** Records of this many transactions, each sent and acknowledged, and of the connections. */
const newsOf = (count: number): number => LEADERS * (2 * count + 2);
const log = { info() {}, warn() {}, error() {} };
const threadEntry = new URL("../support/ingress-sender-thread.mjs", import.meta.url);

/** The record of one transaction by an ingress thread. */
interface SendReport {
  readonly id: number;
  readonly bytes: Uint8Array;
  readonly taken: boolean;
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
  const memory = new SharedArrayBuffer(SHARED_TARGET_TABLE_BYTES);
  const targetTable = new SharedTargetTable(memory);
  const transport = createNativeTransport(
    { native, identity: freshIdentity(), log, targetTable },
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
  return { leaders, memory, targetTable, transport, sender, outcomes };
}

async function setUp(behaviour: Partial<LeaderBehaviour> = {}) {
  const parts = await startSender(behaviour);
  const { outcomes, sender, memory } = parts;
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
    /** An ingress thread on a real thread. */
    async ingressThread(): Promise<Worker> {
      const thread = new Worker(threadEntry, { workerData: { memory } });
      endings.push(() => thread.terminate());
      await new Promise((resolve) => thread.once("message", resolve));
      thread.on("message", (report: SendReport) => (report.taken ? reports : refused).push(report));
      return thread;
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

describe.skipIf(native === null)("a send of an ingress thread", () => {
  it("is acknowledged once by each leader, recorded as the engine's events arrive", async () => {
    const fixture = await setUp();
    fixture.targetTable.beforeEvents = fixture.recordAll;
    const thread = await fixture.ingressThread();
    thread.postMessage({ id: 1, count: 50, pauseMs: 1 });
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

  it("is reported to its end where all events arrived before its record", async () => {
    const fixture = await setUp();
    const thread = await fixture.ingressThread();
    thread.postMessage({ id: 1, count: 20, pauseMs: 1 });
    await until("every report", () => fixture.reports.length === 20);
    await until(
      "all events",
      () => (fixture.transport.counters["recordsDrained"] ?? 0) >= newsOf(20),
    );
    expect(fixture.outcomes).toEqual([]);
    const adoptedNs = systemClock.nowNs();
    fixture.recordAll();
    expect(fixture.stories()).toEqual(Array(20 * LEADERS).fill("sent acked"));
    const acked = fixture.outcomes.filter(({ kind }) => kind === "acked");
    expect(acked.filter(({ atNs }) => atNs >= adoptedNs)).toEqual([]);
  });

  it("has an end where the connection ended before its record", async () => {
    const fixture = await setUp();
    const thread = await fixture.ingressThread();
    thread.postMessage({ id: 1, count: 20, pauseMs: 0 });
    await until("every report", () => fixture.reports.length === 20);
    await fixture.leaders[0]?.leader.stop();
    await until("the end", () => fixture.sender.sendableCount < LEADERS);
    fixture.recordAll();
    await until("every end", () => fixture.ended() === 20 * LEADERS);
    for (const story of fixture.stories()) {
      expect(["sent acked", "sent connection_lost"]).toContain(story);
    }
    expect(fixture.stories()).toHaveLength(20 * LEADERS);
  });

  it("waits in the engine where a leader grants no streams, and none is refused", async () => {
    const fixture = await setUp({ reading: "stalled", streamsMax: 8 });
    const thread = await fixture.ingressThread();
    thread.postMessage({ id: 1, count: 60, pauseMs: 0 });
    await until("every report", () => fixture.reports.length + fixture.refused.length === 60);
    const taken = fixture.reports.length;
    expect([fixture.refused.length, taken]).toEqual([0, 60]);
    fixture.recordAll();
    await until("every end", () => fixture.ended() === taken * LEADERS);
    const stories = fixture.stories();
    expect(stories).toHaveLength(taken * LEADERS);
    expect(stories.filter((story) => story === "sent acked")).toHaveLength(8 * LEADERS);
    expect(stories.filter((story) => story === "leader_saturated")).toHaveLength(
      (taken - 8) * LEADERS,
    );
  });

  it("uses its own streams, next to other ingress threads and the sender", async () => {
    const fixture = await setUp();
    fixture.targetTable.beforeEvents = fixture.recordAll;
    const count = 300;
    const threads = [await fixture.ingressThread(), await fixture.ingressThread()];
    for (const [index, thread] of threads.entries()) {
      thread.postMessage({ id: 1 + index * 10_000, count, pauseMs: 1 });
    }
    let id = 50_000;
    const end = everyMoment(() => {
      if (id === 50_000 + count) return;
      id += 1;
      fixture.sender.accept(packetOf(id, Uint8Array.of(id >> 8, id)));
    });
    await until("every send", () => id === 50_000 + count);
    end();
    const handled = (): number => fixture.sender.counters.packetsAccepted + fixture.refused.length;
    await until("every report", () => handled() === 3 * count);
    const taken = fixture.sender.counters.packetsAccepted;
    await until("every end", () => fixture.ended() === taken * LEADERS);
    expect(fixture.stories()).toHaveLength(taken * LEADERS);
    expect(new Set(fixture.stories())).toEqual(new Set(["sent acked"]));
    expect(taken).toBeGreaterThan(2 * count);
    for (const { received } of fixture.leaders) expect(received).toHaveLength(taken);
  });
});
