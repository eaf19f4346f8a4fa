/** The account of each transaction, whoever accepted it. */

import { describe, expect, it } from "vitest";
import type { RejectionReason } from "../../src/core/errors.ts";
import type { Outcome, Packet } from "../../src/core/flow.ts";
import { Tracker } from "../../src/edge/tracker.ts";
import { DUPLICATE, REJECTED, SENT, VIOLATED } from "../../src/native-ingress/record-ring.ts";
import { REJECTION_NAMES } from "../../src/native-ingress/thread-counters.ts";
import { newSendRecord } from "../../src/send/native/send-record.ts";
import { ACCEPTED } from "../native-ingress/fixture.ts";
import { packetOf } from "../support/packets.ts";
import { ringRecord } from "../support/ring-record.ts";

const PLANS = ["Beta", "Pro"];

function fixture({ isInFlight = false } = {}) {
  const calls: unknown[] = [];
  const latencies: number[] = [];
  const packets: Packet[] = [];
  const tracker = new Tracker({
    clock: { nowNs: () => 900 },
    planName: (number) => PLANS[number] ?? "?",
    engine: {
      recordSend(packet, _, sentNs) {
        packets.push({ ...packet });
        calls.push(["recordSend", packet.id, sentNs]);
      },
    },
    receipts: {
      open: ({ id }, _, decodedNs, nowNs) => void calls.push(["open", id, decodedNs, nowNs]),
      addSubmitter(_, offset, account) {
        calls.push(["submitter", account, offset]);
        return true;
      },
      record: ({ packetId, kind }) => void calls.push(["receipt", packetId, kind]),
    },
    landing: {
      track: ({ id }, _, nowNs, plan) => void calls.push(["track", id, nowNs, plan]),
      mergeDuplicate(_, offset, maxRetries) {
        calls.push(["merge", offset, maxRetries]);
        return isInFlight;
      },
      mergeReserved(_, offset, entryNs) {
        calls.push(["mergeReserved", offset, entryNs]);
        return isInFlight;
      },
      mergeSend: () => isInFlight,
      outcome: ({ packetId, kind }) => void calls.push(["landing", packetId, kind]),
    },
    rejected: ({ account, keyId }, { reason, message }, bytes) =>
      void calls.push(["rejected", account, keyId, reason, message, bytes]),
    latency: { record: (ns) => void latencies.push(ns) },
    usage: {
      request: (keyId, reason, bytes) => void calls.push(["usage", keyId, reason, bytes]),
      taken: (id, keyId, receivedNs) => void calls.push(["taken", id, keyId, receivedNs]),
      outcome: ({ packetId, kind }) => void calls.push(["usage", packetId, kind]),
    },
  });
  return { tracker, calls, latencies, packets };
}

describe("a transaction that the pipeline accepted", () => {
  it("is opened under the next id; one that is not opened uses up none", () => {
    const { tracker, calls } = fixture();
    expect(tracker.nextId).toBe(1);
    tracker.opened(packetOf(1, Uint8Array.of(1)), ACCEPTED, "k1", "Pro", 77);
    expect(calls).toEqual([
      ["open", 1, 77, undefined],
      ["track", 1, 77, "Pro"],
      ["taken", 1, "k1", 1001],
    ]);
    expect(tracker.nextId).toBe(2);
  });

  it("gets its outcomes in receipts, landing and usage, in this order", () => {
    const { tracker, calls } = fixture();
    const outcome: Outcome = {
      ...{ packetId: 7, identity: "L", address: "10.0.0.1:9", slot: 1, kind: "sent" },
      ...{ reason: null, atNs: 1, rttUs: 0, connectionAgeMs: 1, resend: 0 },
    };
    tracker.outcome(outcome);
    expect(calls).toEqual([
      ["receipt", 7, "sent"],
      ["landing", 7, "sent"],
      ["usage", 7, "sent"],
    ]);
  });

  it("is merged with one in flight, and shared by the account that sent it again", () => {
    const packet = packetOf(1, Uint8Array.of(1));
    const fresh = fixture();
    expect(fresh.tracker.mergedIntoInFlight(packet, 1, null)).toBe(false);
    expect(fresh.calls).toEqual([["merge", 1, null]]);
    const { tracker, calls } = fixture({ isInFlight: true });
    expect(tracker.mergedIntoInFlight(packet, 1, 55)).toBe(true);
    expect(calls).toEqual([
      ["mergeReserved", 1, 55],
      ["submitter", "acme", 1],
    ]);
    expect(tracker.nextId).toBe(1);
  });
});

describe("a record of an ingress thread", () => {
  it("records a send under the key that admitted it", () => {
    const { tracker, calls, latencies, packets } = fixture();
    tracker.take(ringRecord(SENT));
    expect(calls).toEqual([
      ["usage", "k1", null, 40],
      ["open", 1, 130, 900],
      ["track", 1, 130, "Pro"],
      ["taken", 1, "k1", 100],
      ["recordSend", 1, 150],
    ]);
    expect(packets).toMatchObject([
      { id: 1, account: "other", receivedNs: 100, maxRetries: 2, offeredLamports: 1_234 },
    ]);
    expect(tracker.validations.accepted).toBe(1);
    expect(latencies).toEqual([50]);
    expect(tracker.counters).toEqual({ decoded: 1, duplicates: 0, corked: 0 });
  });

  it("records a duplicate as one more submission, without decoding", () => {
    const { tracker, calls, latencies } = fixture();
    tracker.take(ringRecord(DUPLICATE, { keyId: "k0", account: "acme", maxRetries: null }));
    expect(calls).toEqual([
      ["usage", "k0", null, 40],
      ["submitter", "acme", 1],
      ["merge", 1, null],
    ]);
    expect(latencies).toEqual([30]);
    expect(tracker.counters).toEqual({ decoded: 0, duplicates: 1, corked: 0 });
  });

  const rejected = (reason: RejectionReason, over: Parameters<typeof ringRecord>[1] = {}) =>
    ringRecord(REJECTED, {
      bytes: Buffer.from("the größte message"),
      reason: REJECTION_NAMES.indexOf(reason),
      validation: { kind: "rejected", errorCode: -1, found: 0, needed: 0 },
      sentNs: 0,
      ...over,
    });

  it("reports a rejection under the key that was used, with its message", () => {
    const { tracker, calls, latencies } = fixture();
    tracker.take(rejected("rate_limited", { bodyBytes: 0 }));
    expect(calls).toEqual([
      ["rejected", "other", "k1", "rate_limited", "the größte message", 0],
      ["usage", "k1", "rate_limited", 0],
    ]);
    // It was answered before any stage.
    expect(latencies).toEqual([]);
    expect(tracker.counters).toEqual({ decoded: 0, duplicates: 0, corked: 0 });
  });

  it("counts the error of a rejection that the decoder found, and its latency", () => {
    const { tracker, calls, latencies } = fixture();
    const validation = { kind: "rejected", errorCode: 3, found: 5, needed: 6 } as const;
    tracker.take(rejected("undecodable", { validation, sentNs: 170 }));
    expect(calls).toEqual([
      ["rejected", "other", "k1", "undecodable", "the größte message", 40],
      ["usage", "k1", "undecodable", 40],
    ]);
    expect(latencies).toEqual([70]);
    expect(tracker.validations.errorCounts[3]).toBe(1);
    expect(tracker.counters).toEqual({ decoded: 1, duplicates: 0, corked: 0 });
  });

  it("shows an account the use of its key that the policy does not allow, and counts none", () => {
    const { tracker, calls, latencies } = fixture();
    tracker.take(ringRecord(VIOLATED, { bytes: Buffer.from("größe"), bodyBytes: 0 }));
    expect(calls).toEqual([["rejected", "other", "k1", "unauthorized", "größe", 0]]);
    expect(latencies).toEqual([]);
  });

  it("takes the account of a key from each record", () => {
    const { tracker, calls } = fixture();
    for (const account of ["other", "moved", "moved"]) {
      tracker.take(ringRecord(DUPLICATE, { account }));
    }
    const submitter = (account: string) => ["submitter", account, 1];
    const usage = ["usage", "k1", null, 40];
    expect(calls).toEqual(
      ["other", "moved", "moved"].flatMap((account) => [
        usage,
        submitter(account),
        ["merge", 1, 2],
      ]),
    );
  });

  it("counts sends that shared a datagram", () => {
    const { tracker } = fixture();
    tracker.take(ringRecord(SENT, { send: { ...newSendRecord(), corked: true } }));
    tracker.take(ringRecord(SENT));
    expect(tracker.counters).toEqual({ decoded: 2, duplicates: 0, corked: 1 });
  });
});
