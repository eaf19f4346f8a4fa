/**
 * Writes records as a front does (`native/src/submit/record_ring.rs`), for tests of the side that
 * reads them.
 */

import type { Accepted } from "../../src/core/flow.ts";
import { ROUTES_SHARED_MAX, V1_TRANSACTION_BYTES_MAX } from "../../src/core/limits.ts";
import { writeVerdict } from "../../src/decode/workers/worker-channel.ts";
import { VERDICT_NUMBERS } from "../../src/native/contract.ts";
import { FRONT_RECORDS } from "../../src/native-ingress/limits.ts";
import { type FrontNote, REPEATED, SENT } from "../../src/native-ingress/record-ring.ts";
import { createRing } from "../../src/runtime/ring.ts";
import type { FrontSend } from "../../src/send/native/send-record.ts";

export interface RecordWriter {
  readonly hasRoom: boolean;
  /** Records that nobody has read. */
  readonly depth: number;
  sent(note: FrontNote, verdict: Accepted, send: FrontSend): void;
  repeated(note: FrontNote, offset: number): void;
}

/** Where a record has what, in numbers. */
const OFFSET = 8;
const VERSION = 9;
const ROUTES = 10;
const MASK = 11;
const HELD = 13;
const VERDICT = 14;
const STREAMS = VERDICT + VERDICT_NUMBERS;
const HEAD_BYTES = 8 * (STREAMS + ROUTES_SHARED_MAX);

export function createRecordWriter(
  memory: SharedArrayBuffer,
  slots: number = FRONT_RECORDS,
): RecordWriter {
  const ring = createRing(memory, 0, slots, HEAD_BYTES + V1_TRANSACTION_BYTES_MAX);
  const bytes = new Uint8Array(memory);
  const numbers = new Float64Array(memory);

  /** Begins a record; where its numbers are. */
  function begin(kind: number, note: FrontNote): number {
    const start = ring.claim();
    if (start === -1) throw new RangeError("no room for a record: hasRoom was not asked");
    const { receivedNs, decodedNs, sentNs, bodyBytes, maxRetries } = note;
    const at = start / 8;
    numbers.set([kind, note.bytes.length, note.place], at);
    numbers.set([receivedNs, decodedNs, sentNs, bodyBytes, maxRetries ?? -1], at + 3);
    bytes.set(note.bytes, start + HEAD_BYTES);
    return at;
  }

  return {
    get hasRoom() {
      return ring.depth < slots;
    },
    get depth() {
      return ring.depth;
    },
    sent(note, verdict, send) {
      const at = begin(SENT, note);
      numbers[at + VERSION] = send.version;
      numbers[at + ROUTES] = send.count;
      numbers[at + MASK] = send.mask;
      numbers[at + HELD] = send.held ? 1 : 0;
      numbers.set(send.streams.subarray(0, send.count), at + STREAMS);
      writeVerdict(numbers, 8 * (at + VERDICT), verdict);
      ring.publish();
    },
    repeated(note, offset) {
      const at = begin(REPEATED, note);
      numbers[at + OFFSET] = offset;
      ring.publish();
    },
  };
}
