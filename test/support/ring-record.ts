/** A record of an ingress thread, as the main thread reads it. */

import type { Accepted } from "../../src/core/flow.ts";
import type { RingRecord } from "../../src/engine/submission-record.ts";
import { newSendRecord } from "../../src/send/native/send-record.ts";

export const ACCEPTED: Accepted = {
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

export function ringRecord(kind: number, over: Partial<RingRecord> = {}): RingRecord {
  return {
    kind,
    isOwn: false,
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
