/** Records: what is written is read, in order, up to the ring's limit. */

import { describe, expect, it, vi } from "vitest";
import type { Accepted } from "../../src/core/flow.ts";
import { V1_TRANSACTION_BYTES_MAX } from "../../src/core/limits.ts";
import { PENDING_SPINS, PENDING_TRIES_MAX } from "../../src/engine/limits.ts";
import {
  CLAIMED,
  DONE,
  DUPLICATE,
  PENDING,
  REJECTED,
  RecordReader,
  type RingRecord,
  recordsMemory,
  SENT,
  VOID,
} from "../../src/engine/record-ring.ts";
import { newSendRecord } from "../../src/send/native/send-record.ts";
import { createRecordWriter } from "../support/record-writer.ts";

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

function ring(slots = 4) {
  const memory = recordsMemory(slots);
  return { writer: createRecordWriter(memory, slots), reader: new RecordReader(memory, slots) };
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

/** All available records, with copied bytes. */
function readAll(reader: RecordReader): RingRecord[] {
  const records: RingRecord[] = [];
  const copy = (record: RingRecord): void => {
    const send = { ...record.send, peers: record.send.peers.slice() };
    records.push({ ...record, bytes: Uint8Array.from(record.bytes), send });
  };
  while (reader.read(copy));
  return records;
}

describe("records of an ingress thread", () => {
  it("describe a send, with all that the accounting needs", () => {
    const { writer, reader } = ring();
    const send = newSendRecord();
    send.number = 41;
    send.count = 3;
    send.status = 0b101;
    send.corked = true;
    send.peers.set([11, 22, 33]);
    const bytes = Uint8Array.from({ length: V1_TRANSACTION_BYTES_MAX }, (_, index) => index & 255);
    writer.sent(note(bytes), ACCEPTED, send);
    const [record] = readAll(reader);
    expect(record).toMatchObject({ ...note(bytes), kind: SENT, validation: ACCEPTED });
    expect(record?.send).toMatchObject({ number: 41, count: 3, status: 0b101, corked: true });
    expect([...(record?.send.peers ?? [])].slice(0, 3)).toEqual([11, 22, 33]);
  });

  it("describe duplicates, and a missing maxRetries as null", () => {
    const { writer, reader } = ring();
    writer.duplicate({ ...note(Uint8Array.of(1, 2)), maxRetries: null }, 1);
    writer.duplicate(note(Uint8Array.of(3), ""), 3);
    const [first, second] = readAll(reader);
    expect(first).toMatchObject({ kind: DUPLICATE, account: "größe", offset: 1, maxRetries: null });
    expect(first?.bytes).toEqual(Uint8Array.of(1, 2));
    expect(second).toMatchObject({ kind: DUPLICATE, account: "", offset: 3, maxRetries: 0 });
  });

  it("describe a rejection, with its message and what the decoder found", () => {
    const { writer, reader } = ring();
    const validation = { kind: "rejected", errorCode: 4, found: 5, needed: 2 ** 53 } as const;
    writer.rejected(note(Buffer.from("why")), 9, validation);
    writer.duplicate(note(Uint8Array.of(1)), 65);
    const [rejected, duplicate] = readAll(reader);
    expect(rejected).toMatchObject({ kind: REJECTED, account: "größe", bodyBytes: 412, reason: 9 });
    expect(rejected?.validation).toEqual(validation);
    expect(Buffer.from(rejected?.bytes ?? []).toString()).toBe("why");
    expect(duplicate?.reason).toBe(-1);
  });

  it("contain nothing of earlier records", () => {
    const { writer, reader } = ring(1);
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
      const [record] = readAll(reader);
      expect(record).toMatchObject({ kind, send, maxRetries: index === 0 ? 0 : null });
    }
  });

  it("are read once their transaction is sent, and not at all where it was not", () => {
    for (const state of [DONE, VOID]) {
      const { writer, reader } = ring(2);
      writer.sent(note(Uint8Array.of(1)), ACCEPTED, newSendRecord(), PENDING);
      const wait = vi.spyOn(Atomics, "wait").mockImplementation((states, at) => {
        if (states instanceof Int32Array) Atomics.store(states, at, state);
        return "not-equal";
      });
      expect(readAll(reader)).toHaveLength(state === DONE ? 1 : 0);
      expect([wait.mock.calls.length, reader.depth]).toEqual([1, 0]);
      wait.mockRestore();
    }
  });

  it("are left where they are while a thread does not finish writing one", () => {
    const { writer, reader } = ring(2);
    const wait = vi.spyOn(Atomics, "wait").mockReturnValue("timed-out");
    // The slots were used before.
    for (const id of [1, 2]) writer.duplicate(note(Uint8Array.of(id)), 1);
    expect(readAll(reader)).toHaveLength(2);
    writer.sent(note(Uint8Array.of(1)), ACCEPTED, newSendRecord(), CLAIMED);
    writer.duplicate(note(Uint8Array.of(2)), 1);
    expect([readAll(reader), reader.depth]).toEqual([[], 2]);
    wait.mockRestore();
  });

  it("count as sent where the ingress thread does not go on", () => {
    const { writer, reader } = ring(2);
    const wait = vi.spyOn(Atomics, "wait").mockReturnValue("timed-out");
    writer.sent(note(Uint8Array.of(1)), ACCEPTED, newSendRecord(), PENDING);
    expect(readAll(reader).map(({ kind }) => kind)).toEqual([SENT]);
    expect(wait).toHaveBeenCalledTimes(PENDING_TRIES_MAX - PENDING_SPINS);
    wait.mockRestore();
  });

  it("report a full ring before anything is lost", () => {
    const { writer, reader } = ring(2);
    writer.duplicate(note(Uint8Array.of(1)), 1);
    expect(writer.hasRoom).toBe(true);
    writer.duplicate(note(Uint8Array.of(2)), 1);
    expect(writer.hasRoom).toBe(false);
    expect(() => writer.duplicate(note(Uint8Array.of(3)), 1)).toThrow(RangeError);
    expect(readAll(reader).map(({ bytes }) => bytes[0])).toEqual([1, 2]);
    expect(writer.hasRoom).toBe(true);
    expect(writer.depth).toBe(0);
  });

  it("release their slot even when the reader throws", () => {
    const { writer, reader } = ring(2);
    writer.duplicate(note(Uint8Array.of(1)), 1);
    expect(() =>
      reader.read(() => {
        throw new Error("accounting closed");
      }),
    ).toThrow("accounting closed");
    expect(reader.depth).toBe(0);
  });
});
