// Hot path: reads in place; allocates one packet and one validation result.
/**
 * The records that the threads of the native engine write for accounting, in one order: a ring in
 * shared memory, one for all ingress threads and the main thread.
 *
 *     ┌ head: numbers ─────────────────────────────────────┬ key id, account ─┬ transaction ─┐
 *     │ kind, size, account size, times, ..., peers        │ 16 + 192 bytes   │ 4096 bytes   │
 *     └────────────────────────────────────────────────────┴──────────────────┴──────────────┘
 *
 * An ingress thread never waits for room: it checks before it sends anything, and proxies the
 * request to the main thread if the ring is full. It claims the slot of a transaction before it
 * sends it, so that its record comes before every event and every duplicate of it, and completes
 * the record afterwards: with what became of the deliveries, or that nothing was sent. A reader
 * that finds a record in between waits for that. A rejection has its message in place of the
 * transaction; it is not recorded where too many records are unread. A record names its key and
 * account, because the key may be removed before it is read; one of a submission of the main thread
 * has the number of the submission instead. The writing side is `native/src/submit/record_ring.rs`.
 */

import type { ValidationResult } from "../core/flow.ts";
import {
  ACCOUNT_NAME_CHARS_MAX,
  SHARED_TARGETS_MAX,
  V1_TRANSACTION_BYTES_MAX,
} from "../core/limits.ts";
import { readValidation } from "../decode/workers/worker-channel.ts";
import { VALIDATION_NUMBERS } from "../native/contract.ts";
import { createRing, type Ring, ringBytes } from "../runtime/ring.ts";
import { newSendRecord, type SendRecord } from "../send/native/send-record.ts";
import { PENDING_PAUSE_MS, PENDING_SPINS, PENDING_TRIES_MAX, RECORD_RING_SLOTS } from "./limits.ts";

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
/** An integer, one of the four below; above its 32 bits is what only writers use. */
const STATE = PLAN + 1;
/** The engine's handles of the connections that it was offered to. */
const PEERS = STATE + 1;
const HEAD_BYTES = 8 * (PEERS + SHARED_TARGETS_MAX);
const ACCOUNT_AT = HEAD_BYTES + KEY_ID_BYTES;
const BYTES_AT = ACCOUNT_AT + ACCOUNT_BYTES_MAX;
const SLOT_BYTES = BYTES_AT + V1_TRANSACTION_BYTES_MAX;

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
  /** When validation finished, and when `txSend` had returned. */
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

/** The state of a record: free, or being written. */
export const CLAIMED = 0;
export const DONE = 1;
/** The transaction was not sent after all. */
export const VOID = 2;
/** The transaction is being sent. */
export const PENDING = 3;

/** Fresh memory for the ring. */
export function recordsMemory(slots: number = RECORD_RING_SLOTS): SharedArrayBuffer {
  return new SharedArrayBuffer(ringBytes(slots, SLOT_BYTES));
}

/** The reading side of the ring. */
export class RecordReader {
  readonly #ring: Ring;
  readonly #bytes: Buffer;
  readonly #numbers: Float64Array;
  readonly #states: Int32Array;
  /** Reused: allocating it would be a fifth of accounting's garbage. */
  readonly #record = newRecord();

  constructor(memory: SharedArrayBuffer, slots: number = RECORD_RING_SLOTS) {
    this.#ring = createRing(memory, 0, slots, SLOT_BYTES);
    this.#bytes = Buffer.from(memory);
    this.#numbers = new Float64Array(memory);
    this.#states = new Int32Array(memory);
  }

  get depth(): number {
    return this.#ring.depth;
  }

  /**
   * Passes the oldest record to `take` and frees its slot; false when there is none, or when its
   * thread does not finish writing it.
   */
  read(take: (record: RingRecord) => void): boolean {
    const start = this.#ring.peek();
    if (start === -1) return false;
    const stateAt = start / 4 + 2 * STATE;
    const state = this.#settledState(stateAt);
    if (state === CLAIMED) return false;
    try {
      if (state !== VOID) take(this.#recordAt(start));
    } finally {
      Atomics.store(this.#states, stateAt, CLAIMED);
      this.#ring.release();
    }
    return true;
  }

  /**
   * Waits while the transaction is being sent, which takes some 10 us; longer only if the ingress
   * thread is interrupted, so this thread leaves it the processor then. Returns PENDING after
   * 50 ms: the transaction counts as sent, with deliveries that wait in the engine.
   */
  #settledState(at: number): number {
    const states = this.#states;
    let state = Atomics.load(states, at);
    for (let tries = 0; tries < PENDING_TRIES_MAX; tries += 1) {
      if (state === DONE || state === VOID) break;
      if (tries >= PENDING_SPINS) Atomics.wait(states, at, state, PENDING_PAUSE_MS);
      state = Atomics.load(states, at);
    }
    return state;
  }

  #recordAt(start: number): RingRecord {
    const numbers = this.#numbers;
    const at = start / 8;
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
