/** A record of an ingress thread, as the main thread reads it. */

import type { RingRecord } from "../../src/native-ingress/record-ring.ts";
import { newSendRecord } from "../../src/send/native/send-record.ts";
import { ACCEPTED } from "../native-ingress/fixture.ts";

export function ringRecord(kind: number, over: Partial<RingRecord> = {}): RingRecord {
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
