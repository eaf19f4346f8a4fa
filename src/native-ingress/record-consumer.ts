// Hot path: `take` runs for each transaction that a front dealt with.
/**
 * Takes what fronts tell into the books: what they sent, and what they were given again. Whose it
 * was is known by the place of the pass that let it in.
 */

import type { RejectionReason } from "../core/errors.ts";
import type { Accepted, Packet } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import type { LatencySink } from "../http/request-tracker.ts";
import type { SendRecord } from "../send/native/send-record.ts";
import { type RingRecord, SENT } from "./record-ring.ts";

/** What is kept of the transactions that fronts took. */
export interface Accounting {
  /** Takes in what a front has put on the wire by itself. */
  recordSend(packet: Packet, keyId: string, accepted: Accepted, sent: SentSubmission): void;
  /** A front was given again what it had passed on a moment ago. */
  recordDuplicate(submitted: Pick<Packet, "bytes" | "account" | "maxRetries">, offset: number): void;
}

/** What a front says of its sending. */
export interface SentSubmission {
  readonly send: SendRecord;
  /** When the verdict was there, and when the engine had it, by `Clock.nowNs`. */
  readonly decodedNs: number;
  readonly sentNs: number;
}

export interface RecordConsumerDeps {
  readonly accounting: Accounting;
  /** From a body complete to its answer. */
  readonly latency: LatencySink;
  /** Counts what each key did; null when nobody does. */
  readonly usage: UsageSink | null;
}

interface UsageSink {
  request(keyId: string, reason: RejectionReason | null, bytes: number): void;
}

export interface RecordConsumerCounters {
  /** Transactions that fronts sent, and those that they answered as repetitions. */
  decoded: number;
  recordDuplicate: number;
  /** Those that they held for a moment, to send them together with others. */
  corked: number;
}

/** Whose key a pass is for. */
export interface CachedKeyPrincipal {
  readonly keyId: string;
  readonly account: string;
}

export class RecordConsumer {
  readonly counters: RecordConsumerCounters = { decoded: 0, repeated: 0, corked: 0 };
  readonly #deps: RecordConsumerDeps;
  readonly #principals: readonly CachedKeyPrincipal[];

  /** `owners` are by the place of their pass. */
  constructor(deps: RecordConsumerDeps, principals: readonly CachedKeyPrincipal[]) {
    this.#deps = deps;
    this.#principals = principals;
  }

  readonly take = (record: RingRecord): void => {
    const { kind, validation, keySlot } = record;
    const principal = this.#principals[keySlot] ?? ANONYMOUS;
    if (kind === SENT && validation.kind === "accepted") this.#recordSend(record, principal, validation);
    else this.#repeat(record, principal);
  };

  #recordSend(record: RingRecord, { account, keyId }: CachedKeyPrincipal, accepted: Accepted): void {
    const { accounting, latency, usage } = this.#deps;
    const { bytes, receivedNs, maxRetries } = record;
    const priorityLamports = accepted.priorityFeeLamports + accepted.tipLamports;
    this.counters.decoded += 1;
    if (record.send.corked) this.counters.corked += 1;
    latency.record(record.sentNs - receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    const packet = createPacket(0, bytes, account, receivedNs, maxRetries, priorityLamports);
    accounting.recordSend(packet, keyId, accepted, record);
  }

  #repeat(record: RingRecord, { account, keyId }: CachedKeyPrincipal): void {
    const { accounting, latency, usage } = this.#deps;
    const { bytes, maxRetries } = record;
    this.counters.repeated += 1;
    latency.record(record.decodedNs - record.receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    accounting.recordDuplicate({ bytes, account, maxRetries }, record.offset);
  }
}

/** Every place that fronts know was somebody's before. */
const ANONYMOUS: CachedKeyPrincipal = { keyId: "", account: "" };
