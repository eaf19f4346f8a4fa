/**
 * Writes records as an ingress thread does (`native/src/submit/record_ring.rs`), for tests of the
 * side that reads them.
 */

import type { Accepted, Rejected } from "../../src/core/flow.ts";
import { SHARED_TARGETS_MAX, V1_TRANSACTION_BYTES_MAX } from "../../src/core/limits.ts";
import { writeValidation } from "../../src/decode/workers/worker-channel.ts";
import { RECORD_RING_SLOTS } from "../../src/engine/limits.ts";
import {
  ACCOUNT_BYTES_MAX,
  CLAIMED,
  DONE,
  DUPLICATE,
  REJECTED,
  SENT,
  type SubmissionRecord,
} from "../../src/engine/record-ring.ts";
import { VALIDATION_NUMBERS } from "../../src/native/contract.ts";
import { createRing } from "../../src/runtime/ring.ts";
import type { SendRecord } from "../../src/send/native/send-record.ts";

export interface RecordWriter {
  readonly hasRoom: boolean;
  /** Unread records. */
  readonly depth: number;
  /** `state`: DONE by default; CLAIMED: as the reader left it. */
  sent(note: SubmissionRecord, validation: Accepted, send: SendRecord, state?: number): void;
  duplicate(note: SubmissionRecord, offset: number): void;
  /** `note.bytes` is the message. */
  rejected(note: SubmissionRecord, reason: number, validation: Rejected): void;
}

/** Offsets of the fields of a record, in numbers. */
const OFFSET = 8;
const NUMBER = 9;
const TARGETS = 10;
const STATUS = 11;
const REASON = 12;
const CORKED = 13;
const VALIDATION = 14;
const PLAN = VALIDATION + VALIDATION_NUMBERS;
const STATE = PLAN + 1;
const PEERS = STATE + 1;
const HEAD_BYTES = 8 * (PEERS + SHARED_TARGETS_MAX);
const KEY_ID_BYTES = 16;
const BYTES_AT = HEAD_BYTES + KEY_ID_BYTES + ACCOUNT_BYTES_MAX;

export function createRecordWriter(
  memory: SharedArrayBuffer,
  slots: number = RECORD_RING_SLOTS,
): RecordWriter {
  const ring = createRing(memory, 0, slots, BYTES_AT + V1_TRANSACTION_BYTES_MAX);
  const bytes = new Uint8Array(memory);
  const buffer = Buffer.from(memory);
  const numbers = new Float64Array(memory);
  const states = new Int32Array(memory);

  /** Begins a record; returns the offset of its numbers. */
  function startRecord(kind: number, note: SubmissionRecord): number {
    const start = ring.claim();
    if (start === -1) throw new RangeError("no space for a record: hasRoom was not called");
    const { receivedNs, decodedNs, sentNs, bodyBytes, maxRetries } = note;
    const at = start / 8;
    const head = start + HEAD_BYTES;
    buffer.write(note.keyId, head, "hex");
    const accountSize = buffer.write(note.account, head + KEY_ID_BYTES, ACCOUNT_BYTES_MAX);
    numbers.set([kind, note.bytes.length, accountSize], at);
    numbers.set([receivedNs, decodedNs, sentNs, bodyBytes, maxRetries ?? -1], at + 3);
    numbers[at + PLAN] = note.planNumber;
    bytes.set(note.bytes, start + BYTES_AT);
    return at;
  }

  function setState(at: number, state: number): void {
    Atomics.store(states, 2 * (at + STATE), state);
  }

  return {
    get hasRoom() {
      return ring.depth < slots;
    },
    get depth() {
      return ring.depth;
    },
    sent(note, validation, send, state = DONE) {
      const at = startRecord(SENT, note);
      numbers[at + NUMBER] = send.number;
      numbers[at + TARGETS] = send.count;
      numbers[at + STATUS] = send.status;
      numbers[at + CORKED] = send.corked ? 1 : 0;
      numbers.set(send.peers.subarray(0, send.count), at + PEERS);
      writeValidation(numbers, 8 * (at + VALIDATION), validation);
      if (state !== CLAIMED) setState(at, state);
      ring.publish();
    },
    duplicate(note, offset) {
      const at = startRecord(DUPLICATE, note);
      numbers[at + OFFSET] = offset;
      setState(at, DONE);
      ring.publish();
    },
    rejected(note, reason, validation) {
      const at = startRecord(REJECTED, note);
      numbers[at + REASON] = reason;
      writeValidation(numbers, 8 * (at + VALIDATION), validation);
      setState(at, DONE);
      ring.publish();
    },
  };
}
