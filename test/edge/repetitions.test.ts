/**
 * Which copies of one transaction each leader receives when clients submit it again and again: real
 * landing, dedup cache and pipeline on a fake clock, with leaders and ingress threads of this file.
 */

import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import type { Outcome, Plan, Target } from "../../src/core/flow.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { DEDUP_KEEP_MS } from "../../src/dedup/limits.ts";
import { createDedupCache } from "../../src/dedup/recent-transactions.ts";
import { Tracker } from "../../src/edge/tracker.ts";
import { deliveryGateOf } from "../../src/engine/delivery-gate.ts";
import { createPipeline } from "../../src/engine/pipeline.ts";
import { SENT } from "../../src/engine/submission-record.ts";
import { SubmissionReporter } from "../../src/engine/submission-reporter.ts";
import { createLanding } from "../../src/landing/landing.ts";
import { RESEND_SAME_LEADER_MS } from "../../src/landing/limits.ts";
import { createReceipts } from "../../src/receipts/receipts.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { DECODER, newPacket } from "../support/packets.ts";
import { ringRecord } from "../support/ring-record.ts";

const OFFSET = 1;
const LEADERS = ["a", "b", "c", "d", "e"];
/** How long the main thread does not read what ingress threads recorded. */
const RECORDS_MS = 200;
const STEP_MS = 10;

const targetOf = (name: string): Target => ({ identity: name, address: `${name}:1`, slot: 1 });
const signatureOf = (bytes: Uint8Array) => Buffer.from(bytes.subarray(OFFSET, 65)).toString("hex");

interface Copy {
  readonly leader: string;
  readonly signature: string;
  readonly atMs: number;
}

/** The first copies of one transaction, and their outcomes that are not reported yet. */
interface Send {
  readonly bytes: Uint8Array;
  /** 0 until the main thread has recorded it. */
  packetId: number;
  readonly outcomes: Outcome[];
}

const sendOf = (bytes: Uint8Array, packetId: number): Send => ({
  bytes: bytes.slice(),
  packetId,
  outcomes: [],
});

interface Options {
  /** 0: the main thread accepts requests itself. */
  readonly ingressThreads: number;
  /** How long the copy of the plan's last leader waits for credit, of every other first send. */
  readonly lateMs: number;
  /** Time between two submissions of one transaction, and between two plans. */
  readonly everyMs: number;
  readonly planMs: number;
}

function startFixture({ ingressThreads, lateMs }: Options) {
  let sends = 0;
  const clock = createFakeClock();
  const dedup = createDedupCache();
  const decoder = createDecoder(DECODER);
  const copies: Copy[] = [];
  /** Records of ingress threads, of each thread in its order. */
  const records: (() => void)[] = [];
  let plan: Plan = { slot: 1, send: [], warm: [] };

  /** Puts a copy on the wire, and reports it as soon as landing knows the packet. */
  function copy(send: Send, { identity, address }: Target): void {
    const atNs = clock.nowNs();
    copies.push({ leader: identity, signature: signatureOf(send.bytes), atMs: atNs / NS_PER_MS });
    const rest = { slot: 1, reason: null, rttUs: 0, connectionAgeMs: 1, resend: 0 };
    send.outcomes.push({ packetId: 0, identity, address, kind: "sent", atNs, ...rest });
    report(send);
  }

  function report(send: Send): void {
    if (send.packetId === 0) return;
    const { packetId } = send;
    for (const outcome of send.outcomes.splice(0)) landing.outcome({ ...outcome, packetId });
  }

  /** Sends to the plan; the last leader's copy may wait. */
  function sendToAll(send: Send): void {
    sends += 1;
    const isLate = lateMs > 0 && sends % 2 === 1;
    for (const target of plan.send) {
      if (!isLate || target !== plan.send.at(-1)) copy(send, target);
      else clock.after(lateMs, () => copy(send, target));
    }
  }

  const landing = createLanding(
    {
      clock,
      log: { info() {}, warn() {}, error() {} },
      cluster: {
        blockHeight: () => null,
        currentSlot: () => 1,
        lastValidHeight: () => null,
        statusReporting: () => "yes",
        contentOf: () => "unknown",
        fetchStatuses: () => Promise.reject(new Error("no node responds")),
      },
      deliveryGate: deliveryGateOf(dedup),
      resender: {
        roomFor: (to) => (plan.send.some((target) => to.wants(target)) ? "room" : "none"),
        resend(packet, to) {
          let count = 0;
          for (const target of plan.send) {
            if (!to.wants(target) || !to.mayLeave()) continue;
            copy(sendOf(packet.bytes, packet.id), target);
            to.accepted(target, false);
            count += 1;
          }
          return count;
        },
      },
      onFinalState() {},
      onProcessed() {},
      onRolledBack() {},
    },
    {
      countMax: 100,
      trackForMs: 60_000,
      pollMs: 400,
      resendsPerSecond: 2_000,
      leaders: 3,
      deliveryTtlMs: 800,
    },
  );
  /** What is sent, until it is reported. */
  let current: Send | null = null;
  function reportCurrent(): void {
    if (current !== null) report(current);
    current = null;
  }
  const tracker = new Tracker({
    clock,
    landing,
    receipts: createReceipts({ clock, slot: () => 1 }, { keepMs: 60_000, entriesMax: 1_000 }),
    usage: null,
    latency: { record() {} },
    rejected() {},
  });
  const reporter = new SubmissionReporter({
    events: tracker,
    sender: {
      recordSend(packet) {
        if (current !== null) current.packetId = packet.id;
        reportCurrent();
      },
    },
    planName: () => "Beta",
    ownSubmitter: () => ({ account: "", keyId: "", plan: "" }),
  });
  const submitHere = createPipeline({
    clock,
    dedup,
    dispatch: { accept: (packet, done) => done(packet, decoder.decode(packet.bytes)) },
    sender: {
      accept(packet) {
        current = sendOf(packet.bytes, 0);
        sendToAll(current);
        current.packetId = packet.id;
        return plan.send.length;
      },
      report: reportCurrent,
    },
    events: tracker,
  });

  function readRecords(): void {
    for (const record of records.splice(0)) record();
  }

  /** As `submit` of `native/src/submit/path.rs`. */
  function submitElsewhere(original: Uint8Array): void {
    const bytes = original.slice();
    const nowNs = clock.nowNs();
    const submitted = { bytes, account: "acme", maxRetries: null };
    const accepted = decoder.decode(bytes);
    if (accepted.kind !== "accepted") throw new Error("a good one is needed");
    if (dedup.query(bytes, OFFSET, nowNs)) {
      records.push(() => tracker.duplicate(submitted, OFFSET));
      return;
    }
    const send = sendOf(bytes, 0);
    sendToAll(send);
    const times = { receivedNs: nowNs, decodedNs: nowNs, sentNs: nowNs };
    records.push(() => {
      current = send;
      reporter.report(ringRecord(SENT, { ...submitted, ...times, validation: accepted }));
    });
    dedup.insert(bytes, OFFSET, nowNs);
  }

  return {
    clock,
    copies,
    landing,
    usePlan(...names: readonly string[]) {
      const send = names.map(targetOf);
      plan = { slot: 1, send, warm: send };
      landing.usePlan(plan);
    },
    submit(bytes: Uint8Array) {
      if (ingressThreads > 0) submitElsewhere(bytes);
      else {
        const receivedNs = clock.nowNs();
        submitHere(
          {
            bytes,
            account: "acme",
            keyId: "k",
            plan: "Beta",
            receivedNs,
            maxRetries: null,
          },
          () => {},
        );
      }
    },
    readRecords,
  };
}

/** Submits 21 transactions again and again for 10 s, while the plan of three leaders moves on. */
function run(options: Options) {
  const rig = startFixture(options);
  const transactions = Array.from({ length: 21 }, (_, id) => newPacket(id + 1, 1_000).bytes);
  const { everyMs, planMs } = options;
  rig.landing.start();
  rig.usePlan("a", "b", "c");
  for (let ms = 0; ms < 10_000; ms += STEP_MS) {
    for (const [index, bytes] of transactions.entries()) {
      const sinceMs = ms - index * 20;
      if (sinceMs >= 0 && sinceMs % everyMs === 0) rig.submit(bytes);
    }
    rig.clock.advance(STEP_MS);
    if (ms % RECORDS_MS === 0) rig.readRecords();
    if ((ms + STEP_MS) % planMs === 0) {
      const at = (ms + STEP_MS) / planMs;
      rig.usePlan(...[0, 1, 2].map((next) => LEADERS[(at + next) % LEADERS.length] ?? ""));
    }
  }
  rig.landing.stop();
  return rig.copies;
}

/** The gaps between the copies of one transaction to one leader, in milliseconds. */
function gapsOf(copies: readonly Copy[]): readonly number[] {
  const last = new Map<string, number>();
  const gaps: number[] = [];
  for (const { leader, signature, atMs } of copies) {
    const key = `${leader} ${signature}`;
    const before = last.get(key);
    if (before !== undefined) gaps.push(atMs - before);
    last.set(key, atMs);
  }
  return gaps;
}

describe("no leader receives a transaction again within 2 s", () => {
  const LOADS = [0, 1].flatMap((ingressThreads) =>
    [0, 40, 600].flatMap((lateMs) =>
      [500, 670, 750].flatMap((everyMs) =>
        [1_000, 4_000].map((planMs) => ({ ingressThreads, lateMs, everyMs, planMs })),
      ),
    ),
  );

  it.each(LOADS)(
    "$ingressThreads ingress threads, submitted each $everyMs ms, a plan each $planMs ms, " +
      "a copy that waits $lateMs ms",
    (options) => {
      const gaps = gapsOf(run(options));
      // Each transaction does go to each leader again.
      expect(gaps.length).toBeGreaterThan(100);
      expect(gaps.filter((gapMs) => gapMs < RESEND_SAME_LEADER_MS)).toEqual([]);
    },
  );
});

describe("a transaction that ended as dropped", () => {
  it.each([0, 1])("is sent and tracked anew, with %i ingress threads", (ingressThreads) => {
    const rig = startFixture({ ingressThreads, lateMs: 0, everyMs: 0, planMs: 0 });
    const { bytes } = newPacket(1, 1_000);
    rig.landing.start();
    rig.usePlan("a");
    const submit = () => {
      rig.submit(bytes);
      rig.readRecords();
      return [rig.landing.counters.accepted, rig.landing.inFlight];
    };
    expect(submit()).toEqual([1, 1]);
    rig.clock.advance(59_000);
    rig.usePlan("b");
    while (rig.landing.inFlight > 0) rig.clock.advance(STEP_MS);
    const count = rig.copies.length;
    const ageMs = rig.clock.nowNs() / NS_PER_MS - (rig.copies.at(-1)?.atMs ?? 0);
    expect(ageMs).toBeLessThan(DEDUP_KEEP_MS);
    expect(submit()).toEqual([2, 1]);
    expect(rig.copies).toHaveLength(count + 1);
  });
});
