/**
 * The path of one transaction through an edge: submission, dedup, decode, send, receipt, landing,
 * response. It is sent before it is recorded, and a transaction that no leader accepted is not
 * recorded. The stages do not know each other; only this file defines their order.
 *
 * Hot path: one closure per transaction, because its result may come from a worker later; with no
 * worker involved a transaction runs through all of this before `submit` returns.
 */

import type { Clock } from "../core/clock.ts";
import { DECODE_ERROR_COUNT, rejectionOf } from "../core/decode-errors.ts";
import { encodeSignature } from "../core/encoding.ts";
import { LEADERS_FULL_REJECTION, NO_LEADER_REJECTION } from "../core/errors.ts";
import type { Accepted, DecodeErrorCode, Packet, SubmitResult } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import type { Decoder } from "../decode/decoder.ts";
import { peekSignatureOffset } from "../decode/transaction.ts";
import type { Dispatch } from "../decode/workers/dispatch.ts";
import type { DecodeDone } from "../decode/workers/worker-handle.ts";
import type { DedupCache, Reservation } from "../dedup/recent-transactions.ts";
import type { Submission, Submit } from "../http/submit/submission.ts";
import type { Landing } from "../landing/landing.ts";
import type { PlanHolder, SentSubmission } from "../native-ingress/record-consumer.ts";
import type { Receipts } from "../receipts/receipts.ts";
import { sleepSync } from "../runtime/sleep-sync.ts";
import { ALL_FULL, type Sender } from "../send/sender.ts";
import { EarlyDuplicates } from "./early-duplicates.ts";
import type { OutcomeBuffer } from "./outcome-buffer.ts";

export interface PipelineDeps {
  readonly clock: Clock;
  readonly dedup: Pick<DedupCache, "query" | "insert" | "reserve" | "commit" | "rollback">;
  /** Whether other threads write to `dedup` too; default false. */
  readonly sharesDedup?: boolean;
  readonly dispatch: Pick<Dispatch, "accept">;
  /** Validates all but the signatures of what an ingress thread verified; null: all is verified. */
  readonly parser?: Pick<Decoder, "decode"> | null;
  readonly sender: Pick<Sender, "accept" | "recordSend">;
  /** Buffers the sender's outcomes of a packet until it is recorded. */
  readonly outcomes: Pick<OutcomeBuffer, "suspend" | "flush">;
  readonly landing: Pick<Landing, "track" | "mergeDuplicate" | "mergeReserved" | "mergeSend">;
  readonly receipts: Pick<Receipts, "open" | "addSubmitter">;
  /** Counts the outcomes of transactions per key; null: usage is not counted. */
  readonly usage: PacketUsage | null;
  /** Encodes the signature at `offset` in base58; default `encodeSignature`. */
  readonly signatureText?: (bytes: Uint8Array, offset: number) => string;
}

export interface PacketUsage {
  /** From now on the packet's outcomes count for this key. */
  taken(packetId: number, keyId: string, receivedNs: number): void;
}

export interface Pipeline {
  readonly submit: Submit;
  /**
   * Records a transaction that an ingress thread has sent. `decodedNs` and `sentNs` are when
   * validation finished, and when the engine had it.
   */
  recordSend(packet: Packet, holder: PlanHolder, accepted: Accepted, sent: SentSubmission): void;
  /** Records a duplicate that an ingress thread detected. */
  recordDuplicate(submitted: Submitted, offset: number): void;
  /** Counts an error that the decoder of an ingress thread found. */
  recordInvalid(errorCode: DecodeErrorCode): void;
  /** Validation results. */
  readonly validations: PipelineValidations;
}

export interface PipelineValidations {
  accepted: number;
  /** By error code. */
  readonly errorCounts: number[];
}

type Done = (result: SubmitResult) => void;
type Submitted = Pick<Packet, "bytes" | "account" | "maxRetries">;

export function createPipeline(deps: PipelineDeps): Pipeline {
  const { clock, dedup, dispatch, sender, outcomes, landing, receipts, usage } = deps;
  const signatureText = deps.signatureText ?? encodeSignature;
  const sharesDedup = deps.sharesDedup ?? false;
  const parser = deps.parser ?? null;
  const early = sharesDedup ? new EarlyDuplicates() : null;
  const validations: PipelineValidations = {
    accepted: 0,
    errorCounts: new Array<number>(DECODE_ERROR_COUNT).fill(0),
  };
  /** Of the last packet that a leader accepted. */
  let lastId = 0;
  /** The packet that is being submitted now; null once `submit` has returned. */
  let submitted: Packet | null = null;

  function recordInvalid(errorCode: DecodeErrorCode): void {
    validations.errorCounts[errorCode] = (validations.errorCounts[errorCode] ?? 0) + 1;
  }

  /** Whether exactly these bytes were accepted recently; if so, records the duplicate. */
  function inFlight(submitted: Submitted, offset: number, nowNs: number): boolean {
    if (!dedup.query(submitted.bytes, offset, nowNs)) return false;
    recordDuplicate(submitted, offset);
    return true;
  }

  function recordDuplicate({ bytes, account, maxRetries }: Submitted, offset: number): void {
    const hasReceipt = receipts.addSubmitter(bytes, offset, account);
    const isTracked = landing.mergeDuplicate(bytes, offset, maxRetries);
    if (!hasReceipt && !isTracked) early?.add(bytes, offset, { account, maxRetries });
  }

  /** Records duplicates that arrived before their original was recorded. */
  function recordEarlyDuplicates({ bytes }: Packet, offset: number): void {
    if (early === null || early.size === 0) return;
    for (const again of early.take(bytes, offset)) recordDuplicate({ bytes, ...again }, offset);
  }

  /** Whether it was merged with one in flight; one verified signature is one transaction. */
  function mergedIntoInFlight(packet: Packet, offset: number, entryNs: number | null): boolean {
    const { bytes, account, maxRetries } = packet;
    const isMerged =
      entryNs === null
        ? landing.mergeDuplicate(bytes, offset, maxRetries)
        : landing.mergeReserved(packet, offset, entryNs);
    if (!isMerged) return false;
    receipts.addSubmitter(bytes, offset, account);
    return true;
  }

  /** An ingress thread resolves a pending reservation within microseconds. */
  function reserve(bytes: Uint8Array, offset: number, nowNs: number): Reservation {
    let reservation = dedup.reserve(bytes, offset, nowNs);
    for (let tries = 0; reservation === "pending" && tries < RESERVE_ATTEMPTS_MAX; tries += 1) {
      if (tries >= RESERVE_SPINS) sleepSync(RESERVE_PAUSE_MS);
      reservation = dedup.reserve(bytes, offset, nowNs);
    }
    return reservation;
  }

  function passOn(
    packet: Packet,
    keyId: string,
    plan: string,
    accepted: Accepted,
    done: Done,
  ): void {
    const { bytes } = packet;
    const offset = accepted.signatureOffset;
    const nowNs = clock.nowNs();
    // The same transaction may have arrived twice: while a worker had the first, or elsewhere.
    const isLate = sharesDedup || packet !== submitted;
    const reservation = isLate ? reserve(bytes, offset, nowNs) : null;
    if (reservation === "duplicate") {
      recordDuplicate(packet, offset);
      done({ kind: "accepted", signature: signatureText(bytes, offset) });
      return;
    }
    if (!mergedIntoInFlight(packet, offset, reservation === "new" ? nowNs : null)) {
      outcomes.suspend();
      // A rejected packet uses up no id: tables indexed by id are sized for accepted ones.
      packet.id = lastId + 1;
      const taken = sender.accept(packet);
      if (taken > 0) {
        lastId = packet.id;
        receipts.open(packet, accepted, nowNs);
        landing.track(packet, accepted, nowNs, plan);
        usage?.taken(packet.id, keyId, packet.receivedNs);
        recordEarlyDuplicates(packet, offset);
      }
      outcomes.flush();
      if (taken <= 0) {
        if (reservation === "new") dedup.rollback(bytes, offset);
        done(taken === ALL_FULL ? LEADERS_FULL : NO_LEADER);
        return;
      }
    }
    if (reservation === "new") dedup.commit(bytes, offset);
    else if (reservation === null) dedup.insert(bytes, offset, nowNs);
    done({ kind: "accepted", signature: signatureText(bytes, offset) });
  }

  function submit(submission: Submission, done: Done): void {
    const { bytes, account, keyId, plan, receivedNs, maxRetries, isVerified } = submission;
    const offset = peekSignatureOffset(bytes);
    if (offset >= 0 && inFlight(submission, offset, receivedNs)) {
      done({ kind: "accepted", signature: signatureText(bytes, offset) });
      return;
    }
    const packet = createPacket(lastId + 1, bytes, account, receivedNs, maxRetries, 0);
    submitted = packet;
    const onDecoded: DecodeDone = (packet, validation) => {
      if (validation.kind === "accepted") {
        packet.offeredLamports = validation.priorityFeeLamports + validation.tipLamports;
        validations.accepted += 1;
        passOn(packet, keyId, plan, validation, done);
      } else {
        recordInvalid(validation.errorCode);
        done({ kind: "rejected", rejection: rejectionOf(validation) });
      }
    };
    if (isVerified && parser !== null) onDecoded(packet, parser.decode(bytes));
    else dispatch.accept(packet, onDecoded);
    submitted = null;
  }

  function recordSend(
    packet: Packet,
    { keyId, plan }: PlanHolder,
    accepted: Accepted,
    sent: SentSubmission,
  ): void {
    const { send, decodedNs, sentNs } = sent;
    validations.accepted += 1;
    lastId += 1;
    packet.id = lastId;
    outcomes.suspend();
    sender.recordSend(packet, send, sentNs);
    // It may be in flight: submitted again more than 2 s after its last copy.
    const offset = accepted.signatureOffset;
    const isMerged = landing.mergeSend(packet, offset, decodedNs);
    receipts.open(packet, accepted, decodedNs, clock.nowNs());
    if (!isMerged) {
      landing.track(packet, accepted, decodedNs, plan);
      usage?.taken(packet.id, keyId, packet.receivedNs);
    }
    recordEarlyDuplicates(packet, offset);
    outcomes.flush();
  }

  return {
    submit,
    validations,
    recordSend,
    recordDuplicate,
    recordInvalid,
  };
}

/** Retries without pause for 0.1 ms, then with pauses: an ingress thread may be preempted. */
const RESERVE_SPINS = 250;
const RESERVE_ATTEMPTS_MAX = 275;
const RESERVE_PAUSE_MS = 0.2;

const NO_LEADER: SubmitResult = { kind: "rejected", rejection: NO_LEADER_REJECTION };
const LEADERS_FULL: SubmitResult = { kind: "rejected", rejection: LEADERS_FULL_REJECTION };
