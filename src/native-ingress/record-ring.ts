// Hot path: reads in place; what it makes is one packet and one verdict.
/**
 * What a front tells the main thread of the transactions that it dealt with, as a ring of records
 * in shared memory, one ring a front.
 *
 *     ┌ head: numbers ────────────────────────────────────────────────────┬ the transaction ─┐
 *     │ kind, size, place, times, body, retries, verdict, routes, streams │ 4096 bytes       │
 *     └───────────────────────────────────────────────────────────────────┴──────────────────┘
 *
 * A front never waits for room: it looks for it before it sends anything, and a request that finds
 * none is left to the main thread. So no transaction is on the wire without its record. The front's
 * side, which writes, is `native/src/submit/record_ring.rs`.
 */

import type { ValidationResult } from "../core/flow.ts";
import { SHARED_TARGETS_MAX, V1_TRANSACTION_BYTES_MAX } from "../core/limits.ts";
import { readValidation } from "../decode/workers/worker-channel.ts";
import { VALIDATION_NUMBERS } from "../native/contract.ts";
import { createRing, type Ring, ringBytes } from "../runtime/ring.ts";
import { newSendRecord, type SendRecord } from "../send/native/send-record.ts";
import { RECORD_RING_SLOTS } from "./limits.ts";

/** What a record is about. */
export const SENT = 1;
export const REPEATED = 2;

const KIND = 0;
const SIZE = 1;
/** The place of the pass that let it in. */
const KEY_SLOT = 2;
const RECEIVED_NS = 3;
const DECODED_NS = 4;
const SENT_NS = 5;
const BODY_BYTES = 6;
/** The sender's `maxRetries`; -1 for none. */
const MAX_RETRIES = 7;
/** Where the first signature starts, of a repetition. */
const OFFSET = 8;
const VERSION = 9;
const ROUTES = 10;
const STATUS = 11;
/** Whether it was held, to leave together with others. */
const CORKED = 13;
const VALIDATION = 14;
const STREAMS = VALIDATION + VALIDATION_NUMBERS;
const HEAD_BYTES = 8 * (STREAMS + SHARED_TARGETS_MAX);
const SLOT_BYTES = HEAD_BYTES + V1_TRANSACTION_BYTES_MAX;

/** What a front knows of a transaction beside its bytes. */
export interface SubmissionRecord {
  readonly bytes: Uint8Array;
  /** The place of the pass that let it in: whose key it was. */
  readonly keySlot: number;
  /** `Clock.nowNs` when the request's body was complete. */
  readonly receivedNs: number;
  /** When the verdict was there, and when `txSend` had returned. */
  readonly decodedNs: number;
  readonly sentNs: number;
  /** Bytes of the request's body. */
  readonly bodyBytes: number;
  readonly maxRetries: number | null;
}

/**
 * A record as the main thread reads it, lent until the next one is read; `send` counts no routes
 * where nothing was sent.
 */
export interface RingRecord extends SubmissionRecord {
  readonly kind: number;
  readonly offset: number;
  readonly validation: ValidationResult;
  readonly send: SendRecord;
}

/** Fresh memory for one front's ring. */
export function recordsMemory(slots: number = RECORD_RING_SLOTS): SharedArrayBuffer {
  return new SharedArrayBuffer(ringBytes(slots, SLOT_BYTES));
}

/** The main thread's side of one front's ring. */
export class RecordReader {
  readonly #ring: Ring;
  readonly #bytes: Uint8Array;
  readonly #numbers: Float64Array;
  /** Written over: it would be a fifth of what the books leave to the collector. */
  readonly #record = newRecord();

  constructor(memory: SharedArrayBuffer, slots: number = RECORD_RING_SLOTS) {
    this.#ring = createRing(memory, 0, slots, SLOT_BYTES);
    this.#bytes = new Uint8Array(memory);
    this.#numbers = new Float64Array(memory);
  }

  get depth(): number {
    return this.#ring.depth;
  }

  /** Tells the oldest record, and gives its place back; false when there is none. */
  read(take: (record: RingRecord) => void): boolean {
    const start = this.#ring.peek();
    if (start === -1) return false;
    try {
      take(this.#recordAt(start));
    } finally {
      this.#ring.release();
    }
    return true;
  }

  #recordAt(start: number): RingRecord {
    const numbers = this.#numbers;
    const at = start / 8;
    const number = (field: number): number => numbers[at + field] ?? 0;
    const kind = number(KIND);
    const record = this.#record;
    record.kind = kind;
    // Elsewhere these are what an earlier record left there.
    const isSent = kind === SENT;
    const { send } = record;
    send.version = isSent ? number(VERSION) : 0;
    send.count = isSent ? number(ROUTES) : 0;
    send.status = isSent ? number(STATUS) : 0;
    send.corked = isSent && number(CORKED) === 1;
    for (let i = 0; i < send.count; i += 1) send.streams[i] = number(STREAMS + i);
    const body = start + HEAD_BYTES;
    const retries = number(MAX_RETRIES);
    record.bytes = this.#bytes.subarray(body, body + number(SIZE));
    record.keySlot = number(KEY_SLOT);
    record.receivedNs = number(RECEIVED_NS);
    record.decodedNs = number(DECODED_NS);
    record.sentNs = number(SENT_NS);
    record.bodyBytes = number(BODY_BYTES);
    record.maxRetries = retries < 0 ? null : retries;
    record.offset = number(OFFSET);
    record.validation = readValidation(numbers, start + 8 * VALIDATION);
    return record;
  }
}

const NO_BYTES: Uint8Array = new Uint8Array(0);
const NO_VALIDATION: ValidationResult = { kind: "refused", errorCode: 0, found: 0, needed: 0 };

/** Numbers begin as fractions, so that V8 gives each room for any. */
function newRecord() {
  return {
    kind: 0.5,
    bytes: NO_BYTES,
    keySlot: 0.5,
    receivedNs: 0.5,
    decodedNs: 0.5,
    sentNs: 0.5,
    bodyBytes: 0.5,
    maxRetries: null as number | null,
    offset: 0.5,
    validation: NO_VALIDATION,
    send: newSendRecord(),
  };
}
