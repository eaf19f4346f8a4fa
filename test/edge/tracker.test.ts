/** The account of each transaction, whoever accepted it. */

import { describe, expect, it } from "vitest";
import { REJECTION_NAMES, type RejectionReason } from "../../src/core/errors.ts";
import type { Outcome } from "../../src/core/flow.ts";
import { Tracker } from "../../src/edge/tracker.ts";
import { DUPLICATE, REJECTED, SENT, VIOLATED } from "../../src/engine/submission-record.ts";
import { packetOf } from "../support/packets.ts";
import { ACCEPTED, ringRecord } from "../support/ring-record.ts";

const HOLDER = { account: "other", keyId: "k1", plan: "Pro" };

function fixture({ isInFlight = false } = {}) {
  const calls: unknown[] = [];
  const latencies: number[] = [];
  const tracker = new Tracker({
    clock: { nowNs: () => 900 },
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
      mergeSend({ id }, offset, nowNs) {
        calls.push(["mergeSend", id, offset, nowNs]);
        return isInFlight;
      },
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
  return { tracker, calls, latencies };
}

describe("a transaction that the engine accepted", () => {
  it("is opened under the next id; one that is not opened uses up none", () => {
    const { tracker, calls } = fixture();
    expect(tracker.nextId).toBe(1);
    tracker.opened(packetOf(1, Uint8Array.of(1)), ACCEPTED, "k1", "Pro", 77);
    expect(calls).toEqual([
      ["mergeSend", 1, 1, 77],
      ["open", 1, 77, 900],
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

  it("is merged with one in flight, whose receipt shows one more submission", () => {
    const { tracker, calls } = fixture({ isInFlight: true });
    tracker.opened(packetOf(1, Uint8Array.of(1)), ACCEPTED, "k1", "Pro", 77);
    expect(calls).toEqual([
      ["mergeSend", 1, 1, 77],
      ["open", 1, 77, 900],
    ]);
    expect(tracker.nextId).toBe(2);
  });

  it("is shared by each account that submits it again", () => {
    const { tracker, calls } = fixture();
    tracker.duplicate({ bytes: Uint8Array.of(1), account: "acme", maxRetries: 3 }, 1);
    expect(calls).toEqual([
      ["submitter", "acme", 1],
      ["merge", 1, 3],
    ]);
  });

  it("is counted by what its validation found", () => {
    const { tracker } = fixture();
    tracker.valid();
    tracker.invalid(3);
    expect([tracker.validations.accepted, tracker.validations.errorCounts[3]]).toEqual([1, 1]);
  });
});

describe("a request that an ingress thread answered", () => {
  it("counts as use of its key, with the time from body to answer", () => {
    const { tracker, calls, latencies } = fixture();
    tracker.answered(ringRecord(SENT), HOLDER);
    tracker.answered(ringRecord(DUPLICATE), HOLDER);
    const usage = ["usage", "k1", null, 40];
    expect(calls).toEqual([usage, usage]);
    expect(latencies).toEqual([50, 30]);
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
    tracker.answered(rejected("rate_limited", { bodyBytes: 0 }), HOLDER);
    expect(calls).toEqual([
      ["rejected", "other", "k1", "rate_limited", "the größte message", 0],
      ["usage", "k1", "rate_limited", 0],
    ]);
    // It was answered before any stage.
    expect(latencies).toEqual([]);
  });

  it("measures a rejection that the decoder found", () => {
    const { tracker, calls, latencies } = fixture();
    const validation = { kind: "rejected", errorCode: 3, found: 5, needed: 6 } as const;
    tracker.answered(rejected("undecodable", { validation, sentNs: 170 }), HOLDER);
    expect(calls).toEqual([
      ["rejected", "other", "k1", "undecodable", "the größte message", 40],
      ["usage", "k1", "undecodable", 40],
    ]);
    expect(latencies).toEqual([70]);
  });

  it("shows an account the use of its key that the policy does not allow, and counts none", () => {
    const { tracker, calls, latencies } = fixture();
    tracker.answered(ringRecord(VIOLATED, { bytes: Buffer.from("größe"), bodyBytes: 0 }), HOLDER);
    expect(calls).toEqual([["rejected", "other", "k1", "unauthorized", "größe", 0]]);
    expect(latencies).toEqual([]);
  });
});
