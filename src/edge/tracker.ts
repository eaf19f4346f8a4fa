// Hot path: everything here runs for each transaction.
/**
 * The one owner of a transaction's account on the main thread. Whatever accepted a transaction, the
 * pipeline or an ingress thread, it is opened here, and what becomes of it is reported here: in
 * order, a transaction before its outcomes, and before each duplicate of it. From here it goes to
 * receipts, landing, usage and metrics, which do not know each other.
 *
 *   pipeline ─────────────────▶ opened, duplicate ─┐
 *   ring of ingress threads ──▶ take ──────────────┼─▶ receipts, landing, usage, metrics
 *   sender ───────────────────▶ outcome ───────────┘
 *
 * Decision: docs/decisions/0056-one-tracker.md
 */

import type { Clock } from "../core/clock.ts";
import { DECODE_ERROR_COUNT } from "../core/decode-errors.ts";
import type { Accepted, DecodeErrorCode, Outcome, Packet } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import type { Engine, EngineEvents } from "../engine/engine.ts";
import {
  type KeyHolder,
  type LatencySink,
  type RejectionSinks,
  reportRejection,
  type UsageSink,
} from "../http/request-tracker.ts";
import type { Landing } from "../landing/landing.ts";
import {
  DUPLICATE,
  REJECTED,
  type RingRecord,
  SENT,
  VIOLATED,
} from "../native-ingress/record-ring.ts";
import { REJECTION_NAMES } from "../native-ingress/thread-counters.ts";
import type { Receipts } from "../receipts/receipts.ts";
import { KEY_HOLDERS_MAX } from "./limits.ts";

/** Counts per key. */
export interface TrackerUsage extends UsageSink {
  /** From now on the packet's outcomes count for this key. */
  taken(packetId: number, keyId: string, receivedNs: number): void;
  outcome(outcome: Outcome): void;
}

export interface TrackerDeps {
  readonly clock: Pick<Clock, "nowNs">;
  readonly receipts: Pick<Receipts, "open" | "addSubmitter" | "record">;
  readonly landing: Pick<
    Landing,
    "track" | "mergeDuplicate" | "mergeReserved" | "mergeSend" | "outcome"
  >;
  /** Reports the deliveries of what an ingress thread sent. */
  readonly engine: Pick<Engine, "recordSend">;
  /** null: usage is not counted. */
  readonly usage: TrackerUsage | null;
  /** From complete body to response, of ingress threads. */
  readonly latency: LatencySink;
  /** Called for each rejection of a known account. */
  readonly rejected: NonNullable<RejectionSinks["rejected"]>;
  /** The name of the plan with this number in the engine. */
  planName(number: number): string;
}

export interface TrackerCounters {
  /** Transactions that ingress threads decoded, and duplicates that they answered. */
  decoded: number;
  duplicates: number;
  /** Transactions corked, to send them together with others. */
  corked: number;
}

/** Results of validation. */
export interface Validations {
  accepted: number;
  /** By error code. */
  readonly errorCounts: number[];
}

type Submitted = Pick<Packet, "bytes" | "account" | "maxRetries">;

/** Of a record of an ingress thread: its key and account, and the account's plan. */
interface PlanHolder extends KeyHolder {
  readonly plan: string;
}

export class Tracker implements EngineEvents {
  readonly validations: Validations = {
    accepted: 0,
    errorCounts: new Array<number>(DECODE_ERROR_COUNT).fill(0),
  };
  /** Of ingress threads. */
  readonly counters: TrackerCounters = { decoded: 0, duplicates: 0, corked: 0 };
  readonly #deps: TrackerDeps;
  /** By key id, so that receipts of one account share its name. */
  readonly #holders = new Map<string, PlanHolder>();
  /** Of the last transaction that a leader accepted. */
  #lastId = 0;

  constructor(deps: TrackerDeps) {
    this.#deps = deps;
  }

  /**
   * The id of the next transaction. One that no leader accepts uses up none: tables indexed by id
   * are sized for accepted ones.
   */
  get nextId(): number {
    return this.#lastId + 1;
  }

  /** Opens a transaction with the next id, which a leader accepted. Its outcomes follow. */
  opened(packet: Packet, accepted: Accepted, keyId: string, plan: string, nowNs: number): void {
    const { receipts, landing, usage } = this.#deps;
    this.#lastId = packet.id;
    receipts.open(packet, accepted, nowNs);
    landing.track(packet, accepted, nowNs, plan);
    usage?.taken(packet.id, keyId, packet.receivedNs);
  }

  /** An accepted transaction was submitted again. */
  duplicate({ bytes, account, maxRetries }: Submitted, offset: number): void {
    this.#deps.receipts.addSubmitter(bytes, offset, account);
    this.#deps.landing.mergeDuplicate(bytes, offset, maxRetries);
  }

  /**
   * Whether it was merged with one in flight; one verified signature is one transaction. `entryNs`:
   * of its entry that the caller reserved in the dedup cache; null: it reserved none.
   */
  mergedIntoInFlight(packet: Packet, offset: number, entryNs: number | null): boolean {
    const { landing, receipts } = this.#deps;
    const { bytes, account, maxRetries } = packet;
    const isMerged =
      entryNs === null
        ? landing.mergeDuplicate(bytes, offset, maxRetries)
        : landing.mergeReserved(packet, offset, entryNs);
    if (isMerged) receipts.addSubmitter(bytes, offset, account);
    return isMerged;
  }

  /** Counts a transaction that a decoder accepted. */
  valid(): void {
    this.validations.accepted += 1;
  }

  /** Counts an error that a decoder found. */
  invalid(errorCode: DecodeErrorCode): void {
    const { errorCounts } = this.validations;
    errorCounts[errorCode] = (errorCounts[errorCode] ?? 0) + 1;
  }

  /** What became of a delivery of a transaction that was opened. */
  readonly outcome = (outcome: Outcome): void => {
    const { receipts, landing, usage } = this.#deps;
    receipts.record(outcome);
    landing.outcome(outcome);
    usage?.outcome(outcome);
  };

  /** What an ingress thread did with a request. */
  readonly take = (record: RingRecord): void => {
    const { kind, validation } = record;
    const holder = this.#holderOf(record);
    if (kind === SENT && validation.kind === "accepted") this.#sent(record, holder, validation);
    else if (kind === DUPLICATE) this.#repeated(record, holder);
    else if (kind === REJECTED) this.#rejected(record, holder);
    else if (kind === VIOLATED) this.#violated(record, holder);
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

  #sent(record: RingRecord, holder: PlanHolder, accepted: Accepted): void {
    const { receipts, landing, engine, usage, latency, clock } = this.#deps;
    const { account, keyId, plan } = holder;
    const { bytes, receivedNs, decodedNs, sentNs, maxRetries } = record;
    this.counters.decoded += 1;
    this.valid();
    if (record.send.corked) this.counters.corked += 1;
    latency.record(sentNs - receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    const offeredLamports = accepted.priorityFeeLamports + accepted.tipLamports;
    this.#lastId += 1;
    const id = this.#lastId;
    const packet = createPacket(id, bytes, account, receivedNs, maxRetries, offeredLamports);
    // It may be in flight: submitted again more than 2 s after its last copy.
    const isMerged = landing.mergeSend(packet, accepted.signatureOffset, decodedNs);
    receipts.open(packet, accepted, decodedNs, clock.nowNs());
    if (!isMerged) {
      landing.track(packet, accepted, decodedNs, plan);
      usage?.taken(id, keyId, receivedNs);
    }
    engine.recordSend(packet, record.send, sentNs);
  }

  #repeated(record: RingRecord, { account, keyId }: KeyHolder): void {
    const { latency, usage } = this.#deps;
    const { bytes, maxRetries } = record;
    this.counters.duplicates += 1;
    latency.record(record.decodedNs - record.receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    this.duplicate({ bytes, account, maxRetries }, record.offset);
  }

  #rejected(record: RingRecord, holder: KeyHolder): void {
    const { bytes, receivedNs, sentNs, validation } = record;
    if (validation.kind === "rejected" && validation.errorCode >= 0) {
      this.counters.decoded += 1;
      this.invalid(validation.errorCode);
    }
    // The HTTP server measures what a stage answered, and not what it refuses before.
    if (sentNs > 0) this.#deps.latency.record(sentNs - receivedNs);
    const reason = REJECTION_NAMES[record.reason] ?? "internal";
    const rejection = { reason, message: messageOf(bytes), data: {} };
    reportRejection(this.#deps, holder, rejection, record.bodyBytes);
  }

  /** The account sees it; it is no use of the key. */
  #violated({ bytes, bodyBytes }: RingRecord, holder: KeyHolder): void {
    const rejection = { reason: "unauthorized", message: messageOf(bytes), data: {} } as const;
    this.#deps.rejected(holder, rejection, bodyBytes);
  }
}

function messageOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}
