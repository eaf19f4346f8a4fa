// Hot path: `take` runs for each transaction that an ingress thread handled.
/**
 * Applies the records of ingress threads to accounting: sent transactions, duplicates, and
 * rejections, which are reported as the HTTP server reports its own. The principal is found by the
 * key slot in the record.
 */

import type { Accepted, DecodeErrorCode, Packet } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import { type LatencySink, type RejectionSinks, reportRejection } from "../http/request-tracker.ts";
import type { SendRecord } from "../send/native/send-record.ts";
import { REJECTED, type RingRecord, SENT } from "./record-ring.ts";
import { REJECTION_NAMES } from "./thread-counters.ts";

/** The accounting of transactions that ingress threads handled. */
export interface Accounting {
  /** Records a transaction that an ingress thread has sent. */
  recordSend(
    packet: Packet,
    principal: CachedKeyPrincipal,
    accepted: Accepted,
    sent: SentSubmission,
  ): void;
  /** Records a duplicate that an ingress thread detected. */
  recordDuplicate(
    submitted: Pick<Packet, "bytes" | "account" | "maxRetries">,
    offset: number,
  ): void;
  /** Counts an error that the decoder of an ingress thread found. */
  recordInvalid(errorCode: DecodeErrorCode): void;
}

/** The send part of a record. */
export interface SentSubmission {
  readonly send: SendRecord;
  /** When validation finished, and when the engine had it, by `Clock.nowNs`. */
  readonly decodedNs: number;
  readonly sentNs: number;
}

export interface RecordConsumerDeps extends RejectionSinks {
  readonly accounting: Accounting;
  /** From complete body to response. */
  readonly latency: LatencySink;
}

export interface RecordConsumerCounters {
  /** Transactions that ingress threads decoded, and duplicates that they answered. */
  decoded: number;
  duplicates: number;
  /** Transactions corked, to send them together with others. */
  corked: number;
}

/** The principal of a cached key. */
export interface CachedKeyPrincipal {
  readonly keyId: string;
  readonly account: string;
  /** The name of the account's plan. */
  readonly plan: string;
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
    else if (kind === REJECTED) this.#reject(record, principal);
    else this.#repeat(record, principal);
  };

  #recordSend(record: RingRecord, principal: CachedKeyPrincipal, accepted: Accepted): void {
    const { accounting, latency, usage } = this.#deps;
    const { account, keyId } = principal;
    const { bytes, receivedNs, maxRetries } = record;
    const offeredLamports = accepted.priorityFeeLamports + accepted.tipLamports;
    this.counters.decoded += 1;
    if (record.send.corked) this.counters.corked += 1;
    latency.record(record.sentNs - receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    const packet = createPacket(0, bytes, account, receivedNs, maxRetries, offeredLamports);
    accounting.recordSend(packet, principal, accepted, record);
  }

  #repeat(record: RingRecord, { account, keyId }: CachedKeyPrincipal): void {
    const { accounting, latency, usage } = this.#deps;
    const { bytes, maxRetries } = record;
    this.counters.duplicates += 1;
    latency.record(record.decodedNs - record.receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    accounting.recordDuplicate({ bytes, account, maxRetries }, record.offset);
  }

  #reject(record: RingRecord, principal: CachedKeyPrincipal): void {
    const { accounting, latency } = this.#deps;
    const { bytes, receivedNs, sentNs, validation } = record;
    if (validation.kind === "rejected" && validation.errorCode >= 0) {
      this.counters.decoded += 1;
      accounting.recordInvalid(validation.errorCode);
    }
    // The HTTP server measures what a stage answered, and not what it refuses before.
    if (sentNs > 0) latency.record(sentNs - receivedNs);
    const reason = REJECTION_NAMES[record.reason] ?? "internal";
    const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
    reportRejection(this.#deps, principal, { reason, message, data: {} }, record.bodyBytes);
  }
}

/** Unreachable: every key slot in a record had a principal before. */
const ANONYMOUS: CachedKeyPrincipal = { keyId: "", account: "", plan: "" };
