/** The records of ingress threads go into accounting, each under its owner. */

import { describe, expect, it } from "vitest";
import type { Accepted, Packet } from "../../src/core/flow.ts";
import {
  type CachedKeyPrincipal,
  RecordConsumer,
  type SentSubmission,
} from "../../src/native-ingress/record-consumer.ts";
import { REPEATED, type RingRecord, SENT } from "../../src/native-ingress/record-ring.ts";
import { newSendRecord } from "../../src/send/native/send-record.ts";

const ACCEPTED: Accepted = {
  kind: "accepted",
  version: -1,
  signatureOffset: 1,
  signatureCount: 1,
  messageOffset: 65,
  messageSize: 200,
  keysOffset: 70,
  blockhashOffset: 170,
  durableNonce: false,
  tipLamports: 1_000,
  priorityFeeLamports: 234,
};
const OWNERS: readonly CachedKeyPrincipal[] = [
  { keyId: "k0", account: "acme" },
  { keyId: "k1", account: "other" },
];

function rig() {
  const told: unknown[] = [];
  const latencies: number[] = [];
  const adopted: { packet: Packet; sent: SentSubmission }[] = [];
  const consumer = new RecordConsumer(
    {
      accounting: {
        recordSend(packet, keyId, _, sent) {
          adopted.push({ packet, sent });
          told.push(["recordSend", keyId, packet.account, packet.priorityLamports]);
        },
        recordDuplicate: ({ account, maxRetries }, offset) =>
          told.push(["duplicate", account, maxRetries, offset]),
      },
      latency: { record: (ns) => latencies.push(ns) },
      usage: { request: (keyId, reason, bytes) => told.push(["usage", keyId, reason, bytes]) },
    },
    OWNERS,
  );
  return { consumer, told, latencies, adopted };
}

function record(kind: number, over: Partial<RingRecord> = {}): RingRecord {
  return {
    kind,
    bytes: Uint8Array.of(1, 2, 3),
    keySlot: 1,
    receivedNs: 100,
    decodedNs: 130,
    sentNs: 150,
    bodyBytes: 40,
    maxRetries: 2,
    offset: 1,
    validation: ACCEPTED,
    send: newSendRecord(),
    ...over,
  };
}

describe("the ledger of fronts", () => {
  it("enters what was sent under the key whose pass let it in", () => {
    const { consumer, told, latencies, adopted } = rig();
    consumer.take(record(SENT));
    expect(told).toEqual([
      ["usage", "k1", null, 40],
      ["recordSend", "k1", "other", 1_234],
    ]);
    expect(adopted[0]?.packet).toMatchObject({ receivedNs: 100, maxRetries: 2 });
    expect(adopted[0]?.sent).toMatchObject({ decodedNs: 130, sentNs: 150 });
    expect(latencies).toEqual([50]);
    expect(consumer.counters).toEqual({ decoded: 1, duplicates: 0, corked: 0 });
  });

  it("enters a repetition as one more submission, which costs no decoding", () => {
    const { consumer, told, latencies } = rig();
    consumer.take(record(REPEATED, { keySlot: 0, maxRetries: null }));
    expect(told).toEqual([
      ["usage", "k0", null, 40],
      ["duplicate", "acme", null, 1],
    ]);
    expect(latencies).toEqual([30]);
    expect(consumer.counters).toEqual({ decoded: 0, duplicates: 1, corked: 0 });
  });

  it("counts those that left together with others", () => {
    const { consumer } = rig();
    consumer.take(record(SENT, { send: { ...newSendRecord(), corked: true } }));
    consumer.take(record(SENT));
    expect(consumer.counters).toEqual({ decoded: 2, duplicates: 0, corked: 1 });
  });
});
