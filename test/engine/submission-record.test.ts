/** Records of submissions: what threads write is what the main thread reads. */

import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Accepted } from "../../src/core/flow.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../../src/core/limits.ts";
import {
  DUPLICATE,
  REJECTED,
  type RingRecord,
  SENT,
  SubmissionRecords,
} from "../../src/engine/submission-record.ts";
import { newSendRecord } from "../../src/send/native/send-record.ts";
import { BATCH_NUMBERS } from "../../src/send/native/transport-native.ts";
import { RecordWriter } from "../support/record-writer.ts";

const ACCEPTED: Accepted = {
  kind: "accepted",
  version: 0,
  signatureOffset: 1,
  signatureCount: 1,
  messageOffset: 65,
  messageSize: 200,
  keysOffset: 70,
  blockhashOffset: 170,
  durableNonce: true,
  tipLamports: 1_000_000,
  priorityFeeLamports: 5_000,
};

function setUp() {
  const batch = new Float64Array(BATCH_NUMBERS);
  const writer = new RecordWriter(batch);
  const records = new SubmissionRecords(batch);
  /** All records that were written, with copied bytes. */
  const readAll = (): RingRecord[] => {
    const found: RingRecord[] = [];
    for (let at = 0; at < writer.size; at += records.sizeOf(at)) {
      const record = records.read(at);
      const send = { ...record.send, peers: record.send.peers.slice() };
      found.push({ ...record, bytes: Uint8Array.from(record.bytes), send });
    }
    writer.size = 0;
    return found;
  };
  return { batch, writer, readAll };
}

function note(bytes: Uint8Array, account = "größe") {
  return {
    bytes,
    keyId: "00112233445566778899aabbccddeeff",
    account,
    planNumber: 7,
    receivedNs: 1_000_000_000_001,
    decodedNs: 1_000_000_000_002,
    sentNs: 1_000_000_000_003,
    bodyBytes: 412,
    maxRetries: 0,
  };
}

describe("records of an ingress thread", () => {
  it("describe a send, with all that the accounting needs", () => {
    const { writer, readAll } = setUp();
    const send = newSendRecord();
    send.number = 41;
    send.count = 3;
    send.status = 0b101;
    send.corked = true;
    send.peers.set([11, 22, 33]);
    const bytes = Uint8Array.from({ length: V1_TRANSACTION_BYTES_MAX }, (_, index) => index & 255);
    writer.sent(note(bytes), ACCEPTED, send);
    const [record] = readAll();
    expect(record).toMatchObject({ ...note(bytes), kind: SENT, validation: ACCEPTED });
    expect(record?.send).toMatchObject({ number: 41, count: 3, status: 0b101, corked: true });
    expect([...(record?.send.peers ?? [])].slice(0, 3)).toEqual([11, 22, 33]);
  });

  it("describe duplicates, and a missing maxRetries as null", () => {
    const { writer, readAll } = setUp();
    writer.duplicate({ ...note(Uint8Array.of(1, 2)), maxRetries: null }, 1);
    writer.duplicate(note(Uint8Array.of(3), ""), 3);
    const [first, second] = readAll();
    expect(first).toMatchObject({ kind: DUPLICATE, account: "größe", offset: 1, maxRetries: null });
    expect(first?.bytes).toEqual(Uint8Array.of(1, 2));
    expect(second).toMatchObject({ kind: DUPLICATE, account: "", offset: 3, maxRetries: 0 });
  });

  it("describe a rejection, with its message and what the decoder found", () => {
    const { writer, readAll } = setUp();
    const validation = { kind: "rejected", errorCode: 4, found: 5, needed: 2 ** 53 } as const;
    writer.rejected(note(Buffer.from("why")), 9, validation);
    writer.duplicate(note(Uint8Array.of(1)), 65);
    const [rejected, duplicate] = readAll();
    expect(rejected).toMatchObject({ kind: REJECTED, account: "größe", bodyBytes: 412, reason: 9 });
    expect(rejected?.validation).toEqual(validation);
    expect(Buffer.from(rejected?.bytes ?? []).toString()).toBe("why");
    expect(duplicate?.reason).toBe(-1);
  });

  it("contain nothing of earlier records", () => {
    const { writer, readAll } = setUp();
    const full = { number: 41, count: 2, status: 3, corked: true };
    const none = { number: 0, count: 0, status: 0, corked: false };
    const bytes = Uint8Array.of(1);
    const plain = { ...note(bytes), maxRetries: null };
    const cases = [
      [() => writer.sent(note(bytes), ACCEPTED, { ...newSendRecord(), ...full }), SENT, full],
      [() => writer.duplicate(plain, 1), DUPLICATE, none],
      [() => writer.sent(plain, ACCEPTED, { ...newSendRecord(), ...full }), SENT, full],
      [() => writer.sent(plain, ACCEPTED, newSendRecord()), SENT, none],
      [() => writer.duplicate(plain, 1), DUPLICATE, none],
    ] as const;
    for (const [index, [write, kind, send]] of cases.entries()) {
      write();
      const [record] = readAll();
      expect(record).toMatchObject({ kind, send, maxRetries: index === 0 ? 0 : null });
    }
  });

  it("have the bytes that the threads write", () => {
    const { batch, writer } = setUp();
    const bytes = Uint8Array.from({ length: V1_TRANSACTION_BYTES_MAX }, (_, at) => 7 * at);
    const peers = Uint32Array.from({ length: 16 }, (_, target) => 0xffff_fff0 + target);
    const sent = { number: 41, count: 16, status: 0x8001_7ffe, corked: true, peers };
    const offsets = { signatureCount: 2, messageOffset: 129, keysOffset: 134 };
    const accepted: Accepted = { ...ACCEPTED, ...offsets, version: -1 };
    const key = { keyId: GOLDEN_KEY_ID, planNumber: 1, maxRetries: 3 };
    writer.sent({ ...note(bytes), ...key }, accepted, sent);
    writer.duplicate({ ...note(bytes.subarray(0, 100)), ...key, maxRetries: null }, 1);
    const second = { ...sent, number: 42, count: 2, status: 2, corked: false };
    writer.sent({ ...note(bytes.subarray(3, 300), ""), ...key }, accepted, second);
    const written = Buffer.from(batch.buffer).subarray(0, 146 * 64);
    expect(writer.size).toBe((73 + 11 + 14) * 8);
    expect(createHash("sha256").update(written).digest("hex")).toBe(GOLDEN);
  });
});

/** Of `native/src/submit/records_tests.rs`. */
const GOLDEN_KEY_ID = "07".repeat(16);
const GOLDEN = "fc5d1fc871e8f5abbde4633489a47753b2ef790fedbb382dda594d224135e742";
