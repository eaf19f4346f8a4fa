import type { Clock } from "../../src/core/clock.ts";
import { encodeSignature } from "../../src/core/encoding.ts";
import type { Packet, SubmitResult, ValidationResult } from "../../src/core/flow.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import type { DecodeDone } from "../../src/decode/workers/worker-handle.ts";
import { createDedupCache } from "../../src/dedup/recent-transactions.ts";
import { Tracker } from "../../src/edge/tracker.ts";
import { createPipeline } from "../../src/engine/pipeline.ts";
import { createLanding } from "../../src/landing/landing.ts";
import { createReceipts } from "../../src/receipts/receipts.ts";
import { createFakeClock } from "./fake-clock.ts";
import { DECODER, newPacket } from "./packets.ts";

interface Pending {
  readonly packet: Packet;
  readonly done: DecodeDone;
}

/**
 * Real dedup cache, receipts and decoder, with a decode stage that can wait and a scripted sender.
 */
export function newFixture() {
  const clock = createFakeClock();
  const dedup = createDedupCache();
  /** The times for which the slot was queried. */
  const slotsAsked: (number | undefined)[] = [];
  const slotAt = (nowNs?: number): number => {
    slotsAsked.push(nowNs);
    return 400;
  };
  const receipts = createReceipts({ clock, slot: slotAt }, { keepMs: 60_000, entriesMax: 100 });
  const decoder = createDecoder(DECODER);
  const landing = newLanding(clock, slotAt);
  const fixture = {
    clock,
    dedup,
    receipts,
    /** Calls in their order, by stage. */
    calls: [] as string[],
    /** What `sender.accept` returns. */
    taken: 1,
    sent: [] as Packet[],
    /** Whether validation results are deferred, as those of a worker are. */
    holds: false,
    pending: [] as Pending[],
    results: [] as SubmitResult[],
    counted: [] as string[],
    slotsAsked,
  };
  const note = (call: string): void => void fixture.calls.push(call);
  const tracker = new Tracker({
    clock,
    landing: {
      track(packet, accepted, nowNs, plan) {
        note("track");
        landing.track(packet, accepted, nowNs, plan);
      },
      mergeDuplicate(bytes, offset, maxRetries) {
        const isMerged = landing.mergeDuplicate(bytes, offset, maxRetries);
        if (isMerged) note("mergeDuplicate");
        return isMerged;
      },
      mergeSend(packet, offset, nowNs) {
        const isMerged = landing.mergeSend(packet, offset, nowNs);
        if (isMerged) note("mergeSend");
        return isMerged;
      },
      outcome: (outcome) => landing.outcome(outcome),
    },
    receipts: {
      open(packet, accepted, decodedNs, nowNs) {
        note("receipt.open");
        receipts.open(packet, accepted, decodedNs, nowNs);
      },
      addSubmitter(bytes, offset, account) {
        note("receipt.addSubmitter");
        return receipts.addSubmitter(bytes, offset, account);
      },
      record: (outcome) => receipts.record(outcome),
    },
    usage: {
      request() {},
      outcome() {},
      taken: (packetId, keyId) => void fixture.counted.push(`${packetId} ${keyId}`),
    },
    latency: { record() {} },
    rejected() {},
  });
  const submitOne = createPipeline({
    clock,
    dedup: {
      query(bytes, offset, nowNs) {
        note("dedup.query");
        return dedup.query(bytes, offset, nowNs);
      },
      insert(bytes, offset, nowNs) {
        note("dedup.insert");
        dedup.insert(bytes, offset, nowNs);
      },
    },
    dispatch: {
      accept(packet, done) {
        note("decode");
        if (fixture.holds) fixture.pending.push({ packet: kept(packet), done });
        else done(packet, decoder.decode(packet.bytes));
      },
    },
    sender: {
      accept(packet) {
        note("send");
        if (fixture.taken > 0) fixture.sent.push(kept(packet));
        return fixture.taken;
      },
      report: () => note("report"),
    },
    events: tracker,
  });
  const submit = (bytes: Uint8Array, account = "acme", maxRetries: number | null = null): void =>
    submitOne(
      {
        bytes,
        account,
        keyId: "k",
        plan: "Beta",
        receivedNs: clock.nowNs(),
        maxRetries,
      },
      (result) => {
        note("result");
        fixture.results.push(result);
      },
    );
  /** Delivers the deferred validation results, oldest first. */
  const decide = (validation?: ValidationResult): void => {
    for (const { packet, done } of fixture.pending.splice(0)) {
      done(packet, validation ?? decoder.decode(packet.bytes));
    }
  };
  return { ...fixture, fixture, landing, tracker, submit, decide };
}

/** A real one, whose cluster reports nothing and whose leaders accept no resend. */
export function newLanding(clock: Clock, slotAt: (nowNs?: number) => number) {
  return createLanding(
    {
      clock,
      log: { info() {}, warn() {}, error() {} },
      cluster: {
        blockHeight: () => null,
        currentSlot: slotAt,
        lastValidHeight: () => null,
        statusReporting: () => "yes",
        contentOf: () => "unknown",
        fetchStatuses: () => Promise.reject(new Error("no node responds")),
      },
      resender: { roomFor: () => "none", resend: () => 0 },
      onFinalState() {},
      onProcessed() {},
      onRolledBack() {},
    },
    {
      countMax: 100,
      trackForMs: 60_000,
      pollMs: 400,
      resendsPerSecond: 0,
      leaders: 2,
      deliveryTtlMs: 800,
    },
  );
}

/** The views are borrowed, so they are copied. */
export function kept(packet: Packet): Packet {
  return { ...packet, bytes: packet.bytes.slice() };
}

export const bytesOf = (id: number, lamports = 1000): Uint8Array => newPacket(id, lamports).bytes;
export const signatureOf = (bytes: Uint8Array): string => encodeSignature(bytes, 1);
