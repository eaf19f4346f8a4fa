// Hot path: everything here runs for each transaction.
/**
 * The one owner of a transaction's account. Whichever thread accepted a transaction, the engine
 * opens it here, and reports here what becomes of it: in order, a transaction before its outcomes,
 * and before each duplicate of it. From here it goes to receipts, landing, usage and metrics, which
 * do not know each other.
 *
 *   engine ──▶ opened, duplicate, outcome, answered ──▶ receipts, landing, usage, metrics
 *
 * Decision: docs/decisions/0056-one-tracker.md
 */

import type { Clock } from "../core/clock.ts";
import { DECODE_ERROR_COUNT } from "../core/decode-errors.ts";
import { REJECTION_NAMES } from "../core/errors.ts";
import type { Accepted, DecodeErrorCode, Outcome, Packet } from "../core/flow.ts";
import type { EngineEvents, Submitter } from "../engine/engine.ts";
import { REJECTED, type RingRecord, SENT, VIOLATED } from "../engine/submission-record.ts";
import {
  type KeyHolder,
  type LatencySink,
  type RejectionSinks,
  reportRejection,
  type UsageSink,
} from "../http/request-tracker.ts";
import type { Landing } from "../landing/landing.ts";
import type { Receipts } from "../receipts/receipts.ts";

/** Counts per key. */
export interface TrackerUsage extends UsageSink {
  /** From now on the packet's outcomes count for this key. */
  taken(packetId: number, keyId: string, receivedNs: number): void;
  outcome(outcome: Outcome): void;
}

export interface TrackerDeps {
  readonly clock: Pick<Clock, "nowNs">;
  readonly receipts: Pick<Receipts, "open" | "addSubmitter" | "record">;
  readonly landing: Pick<Landing, "track" | "mergeDuplicate" | "mergeSend" | "outcome">;
  /** null: usage is not counted. */
  readonly usage: TrackerUsage | null;
  /** From complete body to response, of ingress threads. */
  readonly latency: LatencySink;
  /** Called for each rejection of a known account. */
  readonly rejected: NonNullable<RejectionSinks["rejected"]>;
}

/** Results of validation. */
export interface Validations {
  accepted: number;
  /** By error code. */
  readonly errorCounts: number[];
}

type Submitted = Pick<Packet, "bytes" | "account" | "maxRetries">;

export class Tracker implements EngineEvents {
  readonly validations: Validations = {
    accepted: 0,
    errorCounts: new Array<number>(DECODE_ERROR_COUNT).fill(0),
  };
  readonly #deps: TrackerDeps;
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
    const { receipts, landing, usage, clock } = this.#deps;
    this.#lastId = packet.id;
    // It may be in flight: submitted again more than 2 s after its last copy.
    const isMerged = landing.mergeSend(packet, accepted.signatureOffset, nowNs);
    receipts.open(packet, accepted, nowNs, clock.nowNs());
    if (isMerged) return;
    landing.track(packet, accepted, nowNs, plan);
    usage?.taken(packet.id, keyId, packet.receivedNs);
  }

  /** An accepted transaction was submitted again. */
  duplicate({ bytes, account, maxRetries }: Submitted, offset: number): void {
    this.#deps.receipts.addSubmitter(bytes, offset, account);
    this.#deps.landing.mergeDuplicate(bytes, offset, maxRetries);
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

  /** What an ingress thread answered counts as what the HTTP server answers. */
  answered(record: RingRecord, submitter: Submitter): void {
    const { latency, usage } = this.#deps;
    const { kind, receivedNs, decodedNs, sentNs, bodyBytes } = record;
    if (kind === REJECTED) this.#rejected(record, submitter);
    else if (kind === VIOLATED) this.#violated(record, submitter);
    else {
      latency.record((kind === SENT ? sentNs : decodedNs) - receivedNs);
      usage?.request(submitter.keyId, null, bodyBytes);
    }
  }

  #rejected({ bytes, receivedNs, sentNs, reason, bodyBytes }: RingRecord, holder: KeyHolder): void {
    // The HTTP server measures what a stage answered, and not what it refuses before.
    if (sentNs > 0) this.#deps.latency.record(sentNs - receivedNs);
    const name = REJECTION_NAMES[reason] ?? "internal";
    const rejection = { reason: name, message: messageOf(bytes), data: {} };
    reportRejection(this.#deps, holder, rejection, bodyBytes);
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
