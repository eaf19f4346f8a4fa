// Hot path: `take` runs for each transaction that an ingress thread handled.
/**
 * Applies the records of ingress threads to accounting: sent transactions and duplicates. The
 * principal is found by the key slot in the record.
 */

import type { RejectionReason } from "../core/errors.ts";
import type { Accepted, Packet } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import type { LatencySink } from "../http/request-tracker.ts";
import type { SendRecord } from "../send/native/send-record.ts";
import { type RingRecord, SENT } from "./record-ring.ts";

/** The accounting of transactions that ingress threads handled. */
export interface Accounting {
  /** Records a transaction that an ingress thread has sent. */
  recordSend(packet: Packet, keyId: string, accepted: Accepted, sent: SentSubmission): void;
  /** Records a duplicate that an ingress thread detected. */
  recordDuplicate(
    submitted: Pick<Packet, "bytes" | "account" | "maxRetries">,
    offset: number,
  ): void;
}

/** The send part of a record. */
export interface SentSubmission {
  readonly send: SendRecord;
  /** When validation finished, and when the engine had it, by `Clock.nowNs`. */
  readonly decodedNs: number;
  readonly sentNs: number;
}

export interface RecordConsumerDeps {
  readonly accounting: Accounting;
  /** From complete body to response. */
  readonly latency: LatencySink;
  /** Counts requests per key; null: usage is not counted. */
  readonly usage: UsageSink | null;
}

interface UsageSink {
  request(keyId: string, reason: RejectionReason | null, bytes: number): void;
}

export interface RecordConsumerCounters {
  /** Transactions that ingress threads sent, and duplicates that they answered. */
  decoded: number;
  duplicates: number;
  /** Transactions corked, to send them together with others. */
  corked: number;
}

/** The principal of a cached key. */
export interface CachedKeyPrincipal {
  readonly keyId: string;
  readonly account: string;
}

export class RecordConsumer {
  readonly counters: RecordConsumerCounters = { decoded: 0, duplicates: 0, corked: 0 };
  readonly #deps: RecordConsumerDeps;
  readonly #principals: readonly CachedKeyPrincipal[];

  /** `principals` are by key slot. */
  constructor(deps: RecordConsumerDeps, principals: readonly CachedKeyPrincipal[]) {
    this.#deps = deps;
    this.#principals = principals;
  }

  readonly take = (record: RingRecord): void => {
    const { kind, validation, keySlot } = record;
    const principal = this.#principals[keySlot] ?? ANONYMOUS;
    if (kind === SENT && validation.kind === "accepted")
      this.#recordSend(record, principal, validation);
    else this.#repeat(record, principal);
  };

  #recordSend(
    record: RingRecord,
    { account, keyId }: CachedKeyPrincipal,
    accepted: Accepted,
  ): void {
    const { accounting, latency, usage } = this.#deps;
    const { bytes, receivedNs, maxRetries } = record;
    const offeredLamports = accepted.priorityFeeLamports + accepted.tipLamports;
    this.counters.decoded += 1;
    if (record.send.corked) this.counters.corked += 1;
    latency.record(record.sentNs - receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    const packet = createPacket(0, bytes, account, receivedNs, maxRetries, offeredLamports);
    accounting.recordSend(packet, keyId, accepted, record);
  }

  #repeat(record: RingRecord, { account, keyId }: CachedKeyPrincipal): void {
    const { accounting, latency, usage } = this.#deps;
    const { bytes, maxRetries } = record;
    this.counters.duplicates += 1;
    latency.record(record.decodedNs - record.receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    accounting.recordDuplicate({ bytes, account, maxRetries }, record.offset);
  }
}

/** Unreachable: every key slot in a record had a principal before. */
const ANONYMOUS: CachedKeyPrincipal = { keyId: "", account: "" };
