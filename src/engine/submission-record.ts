// Hot path: reads in place; allocates one validation result.
/**
 * The record of a submission, which the threads of the native engine write among its events, before
 * every event and every duplicate of the transaction.
 *
 *     ┌ head: numbers ─────────────────────────────────────┬ key id, account ─┬ transaction ─┐
 *     │ kind, size, account size, times, ..., peers        │ 16 + 192 bytes   │ to its end   │
 *     └────────────────────────────────────────────────────┴──────────────────┴──────────────┘
 *
 * A rejection has its message in place of the transaction. A record names its key and account,
 * because the key may be removed before it is read; one of a submission of the main thread has the
 * number of the submission instead. The writing side is `native/src/submit/records.rs`.
 */

import type { ValidationResult } from "../core/flow.ts";
import { ACCOUNT_NAME_CHARS_MAX, TARGETS_MAX } from "../core/limits.ts";
import { readValidation } from "../decode/workers/worker-channel.ts";
import { EVENT_NUMBERS, VALIDATION_NUMBERS } from "../native/contract.ts";
import { newSendRecord, type SendRecord } from "../send/native/send-record.ts";

/** The kind of a record. */
export const SENT = 1;
export const DUPLICATE = 2;
export const REJECTED = 3;
/** A request that its key's policy does not allow: the message is that for its account. */
export const VIOLATED = 4;

const KEY_ID_BYTES = 16;
/** Of a name of `ACCOUNT_NAME_CHARS_MAX` characters. */
export const ACCOUNT_BYTES_MAX = 3 * ACCOUNT_NAME_CHARS_MAX;

const KIND = 0;
const SIZE = 1;
/** Bytes of the account's name; below 0: the main thread accepted it. */
const ACCOUNT_SIZE = 2;
const RECEIVED_NS = 3;
const DECODED_NS = 4;
const SENT_NS = 5;
const BODY_BYTES = 6;
/** The client's `maxRetries`; -1 for none. */
const MAX_RETRIES = 7;
/** Where the first signature starts, of a duplicate. */
const OFFSET = 8;
/** The number of its deliveries. */
const NUMBER = 9;
const TARGETS = 10;
const STATUS = 11;
/** The index of a rejection's reason in `REJECTIONS`. */
const REASON = 12;
/** Whether it was corked, to leave together with others. */
const CORKED = 13;
const VALIDATION = 14;
/** The number of the key's plan, or of the main thread's submission. */
const PLAN = VALIDATION + VALIDATION_NUMBERS;
/** How many units of EVENT_NUMBERS the record has. */
const UNITS = PLAN + 1;
/** The engine's handles of the connections that it was offered to. */
const PEERS = UNITS + 1;
const HEAD_BYTES = 8 * (PEERS + TARGETS_MAX);
const ACCOUNT_AT = HEAD_BYTES + KEY_ID_BYTES;
const BYTES_AT = ACCOUNT_AT + ACCOUNT_BYTES_MAX;

/** A record's fields besides the transaction's bytes. */
export interface SubmissionRecord {
  readonly bytes: Uint8Array;
  /**
   * The id of the request's key, 32 hexadecimal digits, and its account; empty in a record of the
   * main thread.
   */
  readonly keyId: string;
  readonly account: string;
  /** The number of the account's plan in the engine; in such a record that of the submission. */
  readonly planNumber: number;
  /** `Clock.nowNs` when the request's body was complete. */
  readonly receivedNs: number;
  /** When validation finished, and when its deliveries had been handed to the connections. */
  readonly decodedNs: number;
  readonly sentNs: number;
  /** Bytes of the request's body. */
  readonly bodyBytes: number;
  readonly maxRetries: number | null;
}

/**
 * A record as the main thread reads it, valid until the next one is read. Where nothing was sent,
 * the target count of `send` is 0.
 */
export interface RingRecord extends SubmissionRecord {
  readonly kind: number;
  /** Whether the main thread accepted it. */
  readonly isOwn: boolean;
  readonly offset: number;
  /** Of a rejection: the index of its reason. */
  readonly reason: number;
  /** Of a rejection that the decoder did not find: an error code of -1. */
  readonly validation: ValidationResult;
  readonly send: SendRecord;
}

/** Reads the records in a batch of the engine's events. */
export class SubmissionRecords {
  readonly #numbers: Float64Array;
  readonly #bytes: Buffer;
  /** Reused: allocating it would be a fifth of accounting's garbage. */
  readonly #record = newRecord();

  constructor(batch: Float64Array) {
    this.#numbers = batch;
    this.#bytes = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength);
  }

  /** The count of numbers of the record that starts with number `at`. */
  sizeOf(at: number): number {
    return (this.#numbers[at + UNITS] ?? 1) * EVENT_NUMBERS;
  }

  /** That record; valid until the next one is read. */
  read(at: number): RingRecord {
    const numbers = this.#numbers;
    const start = 8 * at;
    const number = (field: number): number => numbers[at + field] ?? 0;
    const kind = number(KIND);
    const record = this.#record;
    record.kind = kind;
    // For other kinds these fields hold values of an earlier record.
    const isSent = kind === SENT;
    const { send } = record;
    send.number = isSent ? number(NUMBER) : 0;
    send.count = isSent ? number(TARGETS) : 0;
    send.status = isSent ? number(STATUS) : 0;
    send.corked = isSent && number(CORKED) === 1;
    for (let i = 0; i < send.count; i += 1) send.peers[i] = number(PEERS + i);
    const body = start + BYTES_AT;
    const account = start + ACCOUNT_AT;
    const retries = number(MAX_RETRIES);
    record.bytes = this.#bytes.subarray(body, body + number(SIZE));
    const accountSize = number(ACCOUNT_SIZE);
    const isOwn = accountSize < 0;
    record.isOwn = isOwn;
    record.keyId = isOwn ? "" : this.#bytes.toString("hex", account - KEY_ID_BYTES, account);
    record.account = isOwn ? "" : this.#bytes.toString("utf8", account, account + accountSize);
    record.receivedNs = number(RECEIVED_NS);
    record.decodedNs = number(DECODED_NS);
    record.sentNs = number(SENT_NS);
    record.bodyBytes = number(BODY_BYTES);
    record.maxRetries = retries < 0 ? null : retries;
    record.offset = number(OFFSET);
    record.planNumber = number(PLAN);
    record.reason = kind === REJECTED ? number(REASON) : -1;
    record.validation = readValidation(numbers, start + 8 * VALIDATION);
    return record;
  }
}

const NO_BYTES: Uint8Array = new Uint8Array(0);
const NO_VALIDATION: ValidationResult = { kind: "rejected", errorCode: 0, found: 0, needed: 0 };

/** Initialized with fractions, so that V8 represents each field as a double. */
function newRecord() {
  return {
    kind: 0.5,
    isOwn: false,
    bytes: NO_BYTES,
    keyId: "",
    account: "",
    receivedNs: 0.5,
    decodedNs: 0.5,
    sentNs: 0.5,
    bodyBytes: 0.5,
    maxRetries: null as number | null,
    offset: 0.5,
    planNumber: 0.5,
    reason: 0.5,
    validation: NO_VALIDATION,
    send: newSendRecord(),
  };
}
