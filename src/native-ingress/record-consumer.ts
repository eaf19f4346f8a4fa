// Hot path: `take` runs for each transaction that an ingress thread handled.
/**
 * Applies the records of ingress threads to accounting: sent transactions, duplicates, and
 * rejections, which are reported as the HTTP server reports its own.
 */

import type { Accepted, DecodeErrorCode, Packet } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import {
  type KeyHolder,
  type LatencySink,
  type RejectionSinks,
  reportRejection,
} from "../http/request-tracker.ts";
import type { SendRecord } from "../send/native/send-record.ts";
import { KEY_HOLDERS_MAX } from "./limits.ts";
import { REJECTED, type RingRecord, SENT, VIOLATED } from "./record-ring.ts";
import { REJECTION_NAMES } from "./thread-counters.ts";

/** The accounting of transactions that ingress threads handled. */
export interface Accounting {
  /** Records a transaction that an ingress thread has sent. */
  recordSend(packet: Packet, holder: PlanHolder, accepted: Accepted, sent: SentSubmission): void;
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
  /** The name of the plan with this number in the engine. */
  planName(number: number): string;
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

/** Of a transaction: its key and account, and the account's plan. */
export interface PlanHolder extends KeyHolder {
  /** The name of the plan. */
  readonly plan: string;
}

export class RecordConsumer {
  readonly counters: RecordConsumerCounters = { decoded: 0, duplicates: 0, corked: 0 };
  readonly #deps: RecordConsumerDeps;
  /** By key id, so that receipts of one account share its name. */
  readonly #holders = new Map<string, PlanHolder>();

  constructor(deps: RecordConsumerDeps) {
    this.#deps = deps;
  }

  readonly take = (record: RingRecord): void => {
    const { kind, validation } = record;
    const holder = this.#holderOf(record);
    if (kind === SENT && validation.kind === "accepted")
      this.#recordSend(record, holder, validation);
    else if (kind === REJECTED) this.#reject(record, holder);
    else if (kind === VIOLATED) this.#violate(record, holder);
    else this.#repeat(record, holder);
  };

  #holderOf({ keyId, account, planNumber }: RingRecord): PlanHolder {
    const plan = this.#deps.planName(planNumber);
    const known = this.#holders.get(keyId);
    if (known?.account === account && known.plan === plan) return known;
    if (this.#holders.size >= KEY_HOLDERS_MAX) this.#holders.clear();
    const holder = { keyId, account, plan };
    this.#holders.set(keyId, holder);
    return holder;
  }

  #recordSend(record: RingRecord, holder: PlanHolder, accepted: Accepted): void {
    const { accounting, latency, usage } = this.#deps;
    const { account, keyId } = holder;
    const { bytes, receivedNs, maxRetries } = record;
    const offeredLamports = accepted.priorityFeeLamports + accepted.tipLamports;
    this.counters.decoded += 1;
    if (record.send.corked) this.counters.corked += 1;
    latency.record(record.sentNs - receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    const packet = createPacket(0, bytes, account, receivedNs, maxRetries, offeredLamports);
    accounting.recordSend(packet, holder, accepted, record);
  }

  #repeat(record: RingRecord, { account, keyId }: KeyHolder): void {
    const { accounting, latency, usage } = this.#deps;
    const { bytes, maxRetries } = record;
    this.counters.duplicates += 1;
    latency.record(record.decodedNs - record.receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    accounting.recordDuplicate({ bytes, account, maxRetries }, record.offset);
  }

  #reject(record: RingRecord, principal: KeyHolder): void {
    const { accounting, latency } = this.#deps;
    const { bytes, receivedNs, sentNs, validation } = record;
    if (validation.kind === "rejected" && validation.errorCode >= 0) {
      this.counters.decoded += 1;
      accounting.recordInvalid(validation.errorCode);
    }
    // The HTTP server measures what a stage answered, and not what it refuses before.
    if (sentNs > 0) latency.record(sentNs - receivedNs);
    const reason = REJECTION_NAMES[record.reason] ?? "internal";
    const rejection = { reason, message: messageOf(bytes), data: {} };
    reportRejection(this.#deps, principal, rejection, record.bodyBytes);
  }

  /** The account sees it; it is no use of the key. */
  #violate({ bytes, bodyBytes }: RingRecord, holder: KeyHolder): void {
    const rejection = { reason: "unauthorized", message: messageOf(bytes), data: {} } as const;
    this.#deps.rejected?.(holder, rejection, bodyBytes);
  }
}

function messageOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}
