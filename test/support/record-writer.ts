/**
 * Writes records as the threads of the native engine do (`native/src/submit/records.rs`), for tests
 * of the side that reads them: one after the other, as they are in a batch of its events.
 */

import type { Accepted, ValidationResult } from "../../src/core/flow.ts";
import { TARGETS_MAX } from "../../src/core/limits.ts";
import { writeValidation } from "../../src/decode/workers/worker-channel.ts";
import {
  ACCOUNT_BYTES_MAX,
  DUPLICATE,
  REJECTED,
  SENT,
  type SubmissionRecord,
} from "../../src/engine/submission-record.ts";
import { EVENT_NUMBERS, VALIDATION_NUMBERS } from "../../src/native/contract.ts";
import type { SendRecord } from "../../src/send/native/send-record.ts";

/** Offsets of the fields of a record, in numbers. */
const OFFSET = 8;
const NUMBER = 9;
const TARGETS = 10;
const STATUS = 11;
const REASON = 12;
const CORKED = 13;
const VALIDATION = 14;
const PLAN = VALIDATION + VALIDATION_NUMBERS;
const UNITS = PLAN + 1;
const PEERS = UNITS + 1;
const HEAD_BYTES = 8 * (PEERS + TARGETS_MAX);
const KEY_ID_BYTES = 16;
const BYTES_AT = HEAD_BYTES + KEY_ID_BYTES + ACCOUNT_BYTES_MAX;

export class RecordWriter {
  /** Numbers that were written to the batch. */
  size = 0;
  readonly #batch: Float64Array;
  readonly #bytes: Buffer;

  constructor(batch: Float64Array) {
    this.#batch = batch;
    this.#bytes = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength);
  }

  sent(note: SubmissionRecord, validation: Accepted, send: SendRecord): void {
    const at = this.#start(SENT, note);
    const batch = this.#batch;
    batch[at + NUMBER] = send.number;
    batch[at + TARGETS] = send.count;
    batch[at + STATUS] = send.status;
    batch[at + CORKED] = send.corked ? 1 : 0;
    batch.set(send.peers.subarray(0, send.count), at + PEERS);
    writeValidation(batch, 8 * (at + VALIDATION), validation);
  }

  duplicate(note: SubmissionRecord, offset: number): void {
    this.#batch[this.#start(DUPLICATE, note) + OFFSET] = offset;
  }

  /** `note.bytes` is the message. */
  rejected(note: SubmissionRecord, reason: number, validation: ValidationResult): void {
    const at = this.#start(REJECTED, note);
    this.#batch[at + REASON] = reason;
    writeValidation(this.#batch, 8 * (at + VALIDATION), validation);
  }

  /** Begins a record; returns where it starts. */
  #start(kind: number, note: SubmissionRecord): number {
    const { receivedNs, decodedNs, sentNs, bodyBytes, maxRetries, planNumber } = note;
    const at = this.size;
    const head = 8 * at + HEAD_BYTES;
    const units = Math.ceil((BYTES_AT + note.bytes.length) / (8 * EVENT_NUMBERS));
    this.#bytes.write(note.keyId, head, "hex");
    const accountSize = this.#bytes.write(note.account, head + KEY_ID_BYTES, ACCOUNT_BYTES_MAX);
    this.#batch.set([kind, note.bytes.length, accountSize], at);
    this.#batch.set([receivedNs, decodedNs, sentNs, bodyBytes, maxRetries ?? -1], at + 3);
    this.#batch.set([planNumber, units], at + PLAN);
    this.#bytes.set(note.bytes, 8 * at + BYTES_AT);
    this.size += units * EVENT_NUMBERS;
    return at;
  }
}
