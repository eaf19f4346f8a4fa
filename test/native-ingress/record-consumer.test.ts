/** The records of ingress threads go into accounting, each under its owner. */

import { describe, expect, it } from "vitest";
import type { RejectionReason } from "../../src/core/errors.ts";
import type { Packet } from "../../src/core/flow.ts";
import { RecordConsumer, type SentSubmission } from "../../src/native-ingress/record-consumer.ts";
import {
  DUPLICATE,
  REJECTED,
  type RingRecord,
  SENT,
  VIOLATED,
} from "../../src/native-ingress/record-ring.ts";
import { REJECTION_NAMES } from "../../src/native-ingress/thread-counters.ts";
import { newSendRecord } from "../../src/send/native/send-record.ts";
import { ACCEPTED } from "./fixture.ts";

const PLANS = ["Beta", "Pro"];

function fixture() {
  const calls: unknown[] = [];
  const latencies: number[] = [];
  const recorded: { packet: Packet; sent: SentSubmission }[] = [];
  const consumer = new RecordConsumer({
    planName: (number) => PLANS[number] ?? "?",
    accounting: {
      recordSend(packet, { keyId, plan }, _, sent) {
        recorded.push({ packet, sent });
        calls.push(["recordSend", keyId, plan, packet.account, packet.offeredLamports]);
      },
      recordDuplicate: ({ account, maxRetries }, offset) =>
        calls.push(["duplicate", account, maxRetries, offset]),
      recordInvalid: (errorCode) => calls.push(["invalid", errorCode]),
    },
    rejected: ({ account, keyId }, { reason, message }, bytes) =>
      calls.push(["rejected", account, keyId, reason, message, bytes]),
    latency: { record: (ns) => latencies.push(ns) },
    usage: { request: (keyId, reason, bytes) => calls.push(["usage", keyId, reason, bytes]) },
  });
  return { consumer, calls, latencies, recorded };
}

function record(kind: number, over: Partial<RingRecord> = {}): RingRecord {
  return {
    kind,
    bytes: Uint8Array.of(1, 2, 3),
    keyId: "k1",
    account: "other",
    planNumber: 1,
    receivedNs: 100,
    decodedNs: 130,
    sentNs: 150,
    bodyBytes: 40,
    maxRetries: 2,
    offset: 1,
    reason: -1,
    validation: ACCEPTED,
    send: newSendRecord(),
    ...over,
  };
}

describe("the record consumer", () => {
  it("records a send under the key that admitted it", () => {
    const { consumer, calls, latencies, recorded } = fixture();
    consumer.take(record(SENT));
    expect(calls).toEqual([
      ["usage", "k1", null, 40],
      ["recordSend", "k1", "Pro", "other", 1_234],
    ]);
    expect(recorded[0]?.packet).toMatchObject({ receivedNs: 100, maxRetries: 2 });
    expect(recorded[0]?.sent).toMatchObject({ decodedNs: 130, sentNs: 150 });
    expect(latencies).toEqual([50]);
    expect(consumer.counters).toEqual({ decoded: 1, duplicates: 0, corked: 0 });
  });

  it("records a duplicate as one more submission, without decoding", () => {
    const { consumer, calls, latencies } = fixture();
    consumer.take(record(DUPLICATE, { keyId: "k0", account: "acme", maxRetries: null }));
    expect(calls).toEqual([
      ["usage", "k0", null, 40],
      ["duplicate", "acme", null, 1],
    ]);
    expect(latencies).toEqual([30]);
    expect(consumer.counters).toEqual({ decoded: 0, duplicates: 1, corked: 0 });
  });

  const rejected = (reason: RejectionReason, over: Partial<RingRecord> = {}) =>
    record(REJECTED, {
      bytes: Buffer.from("the größte message"),
      reason: REJECTION_NAMES.indexOf(reason),
      validation: { kind: "rejected", errorCode: -1, found: 0, needed: 0 },
      sentNs: 0,
      ...over,
    });

  it("reports a rejection under the key that was used, with its message", () => {
    const { consumer, calls, latencies } = fixture();
    consumer.take(rejected("rate_limited", { bodyBytes: 0 }));
    expect(calls).toEqual([
      ["rejected", "other", "k1", "rate_limited", "the größte message", 0],
      ["usage", "k1", "rate_limited", 0],
    ]);
    // It was answered before any stage.
    expect(latencies).toEqual([]);
    expect(consumer.counters).toEqual({ decoded: 0, duplicates: 0, corked: 0 });
  });

  it("counts the error of a rejection that the decoder found, and its latency", () => {
    const { consumer, calls, latencies } = fixture();
    const validation = { kind: "rejected", errorCode: 3, found: 5, needed: 6 } as const;
    consumer.take(rejected("undecodable", { validation, sentNs: 170 }));
    expect(calls).toEqual([
      ["invalid", 3],
      ["rejected", "other", "k1", "undecodable", "the größte message", 40],
      ["usage", "k1", "undecodable", 40],
    ]);
    expect(latencies).toEqual([70]);
    expect(consumer.counters).toEqual({ decoded: 1, duplicates: 0, corked: 0 });
  });

  it("shows an account the use of its key that the policy does not allow, and counts none", () => {
    const { consumer, calls, latencies } = fixture();
    consumer.take(record(VIOLATED, { bytes: Buffer.from("größe"), bodyBytes: 0 }));
    expect(calls).toEqual([["rejected", "other", "k1", "unauthorized", "größe", 0]]);
    expect(latencies).toEqual([]);
  });

  it("takes the account of a key from each record", () => {
    const { consumer, calls } = fixture();
    for (const account of ["other", "moved", "moved"]) {
      consumer.take(record(DUPLICATE, { account }));
    }
    const duplicate = (account: string) => ["duplicate", account, 2, 1];
    const usage = ["usage", "k1", null, 40];
    expect(calls).toEqual(
      ["other", "moved", "moved"].flatMap((account) => [usage, duplicate(account)]),
    );
  });

  it("counts sends that shared a datagram", () => {
    const { consumer } = fixture();
    consumer.take(record(SENT, { send: { ...newSendRecord(), corked: true } }));
    consumer.take(record(SENT));
    expect(consumer.counters).toEqual({ decoded: 2, duplicates: 0, corked: 1 });
  });
});
