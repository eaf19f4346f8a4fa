/**
 * The path of one transaction through an edge, joined: submission, seen, decode, send, receipt,
 * landing, answer. It is on the wire before anything is noted of it, and of one that no leader took
 * nothing is.
 * The stages know nothing of each other; this file is the only one that knows their order.
 *
 * Hot path: one closure for each transaction, because its answer may come from a worker later; a
 * lone transaction runs through all of this before `submit` returns.
 */

import type { Clock } from "../core/clock.ts";
import { DECODE_ERROR_COUNT, rejectionOf } from "../core/decode-errors.ts";
import { encodeSignature } from "../core/encoding.ts";
import type { Rejection } from "../core/errors.ts";
import type { Accepted, Packet, SubmitResult } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import { peekSignatureOffset } from "../decode/transaction.ts";
import type { Dispatch } from "../decode/workers/dispatch.ts";
import type { DedupCache, Reservation } from "../dedup/recent-transactions.ts";
import type { Submission, Submit } from "../http/submit/submission.ts";
import type { Landing } from "../landing/landing.ts";
import type { SentSubmission } from "../native-ingress/record-consumer.ts";
import type { Receipts } from "../receipts/receipts.ts";
import { sleepSync } from "../runtime/sleep-sync.ts";
import { ALL_FULL, type Sender } from "../send/sender.ts";
import { EarlyDuplicates } from "./early-duplicates.ts";
import type { OutcomeBuffer } from "./outcome-buffer.ts";

export interface PipelineDeps {
  readonly clock: Clock;
  readonly dedup: Pick<DedupCache, "query" | "insert" | "reserve" | "commit" | "rollback">;
  /** Whether other threads put into `seen`, too; not when not given. */
  readonly sharesDedup?: boolean;
  readonly dispatch: Pick<Dispatch, "accept">;
  readonly sender: Pick<Sender, "accept" | "recordSend">;
  /** Holds what the sender tells of a packet until it is noted. */
  readonly outcomes: Pick<OutcomeBuffer, "suspend" | "flush">;
  readonly landing: Pick<Landing, "track" | "mergeDuplicate">;
  readonly receipts: Pick<Receipts, "open" | "addSubmitter">;
  /** Counts for each key what becomes of its transactions; null when nobody does. */
  readonly usage: PacketUsage | null;
  /** Writes the signature at `offset` in base58; `encodeSignature` when not given. */
  readonly signatureText?: (bytes: Uint8Array, offset: number) => string;
}

export interface PacketUsage {
  /** From now on what becomes of this packet is counted for this key. */
  taken(packetId: number, keyId: string, receivedNs: number): void;
}

export interface Pipeline {
  readonly submit: Submit;
  /**
   * Takes into the books what a front has sent by itself. `decodedNs` and `sentNs` are when it had
   * the verdict, and when the engine had it.
   */
  adopt(packet: Packet, keyId: string, accepted: Accepted, sent: SentSubmission): void;
  /** A front was given again what it had passed on a moment ago. */
  repeated(submitted: Submitted, offset: number): void;
  /** Transactions with an accepting verdict. */
  readonly validations: PipelineValidations;
}

export interface PipelineValidations {
  accepted: number;
  /** By fault code. */
  readonly errorCounts: number[];
}

type Done = (result: SubmitResult) => void;
type Submitted = Pick<Packet, "bytes" | "account" | "maxRetries">;

export function createPipeline(deps: PipelineDeps): Pipeline {
  const { clock, dedup, dispatch, sender, outcomes, landing, receipts, usage } = deps;
  const signatureText = deps.signatureText ?? encodeSignature;
  const sharesDedup = deps.sharesDedup ?? false;
  const early = sharesDedup ? new EarlyDuplicates() : null;
  const validations: PipelineValidations = {
    accepted: 0,
    errorCounts: new Array<number>(DECODE_ERROR_COUNT).fill(0),
  };
  /** Of the last packet that a leader took. */
  let lastId = 0;
  /** The packet that is being submitted now; null once `submit` has returned. */
  let submitted: Packet | null = null;

  /** Whether these very bytes were passed on a moment ago; notes that they came once more. */
  function inFlight(submitted: Submitted, offset: number, nowNs: number): boolean {
    if (!dedup.query(submitted.bytes, offset, nowNs)) return false;
    recordDuplicate(submitted, offset);
    return true;
  }

  function recordDuplicate({ bytes, account, maxRetries }: Submitted, offset: number): void {
    const hasReceipt = receipts.addSubmitter(bytes, offset, account);
    const isWatched = landing.mergeDuplicate(bytes, offset, maxRetries);
    if (!hasReceipt && !isWatched) early?.add(bytes, offset, { account, maxRetries });
  }

  /** What came before its transaction was noted. */
  function recordEarlyDuplicates({ bytes }: Packet, offset: number): void {
    if (early === null || early.size === 0) return;
    for (const again of early.take(bytes, offset)) recordDuplicate({ bytes, ...again }, offset);
  }

  /** Whether it joined one that is in flight; one signature that verifies is one transaction. */
  function mergedIntoInFlight({ bytes, account, maxRetries }: Packet, offset: number): boolean {
    if (!landing.mergeDuplicate(bytes, offset, maxRetries)) return false;
    receipts.addSubmitter(bytes, offset, account);
    return true;
  }

  /** A front that has it at this moment says within microseconds whether it sent it. */
  function reserve(bytes: Uint8Array, offset: number, nowNs: number): Reservation {
    let reservation = dedup.reserve(bytes, offset, nowNs);
    for (let looks = 0; reservation === "pending" && looks < RESERVE_ATTEMPTS_MAX; looks += 1) {
      if (looks >= RESERVE_SPINS) sleepSync(RESERVE_PAUSE_MS);
      reservation = dedup.reserve(bytes, offset, nowNs);
    }
    return reservation;
  }

  function passOn(packet: Packet, keyId: string, accepted: Accepted, done: Done): void {
    const { bytes } = packet;
    const offset = accepted.signatureOffset;
    const nowNs = clock.nowNs();
    // The same transaction may have come in twice: while a worker had the first, or to a front.
    const isLate = sharesDedup || packet !== submitted;
    const reservation = isLate ? reserve(bytes, offset, nowNs) : null;
    if (reservation === "duplicate") {
      recordDuplicate(packet, offset);
      done({ kind: "accepted", signature: signatureText(bytes, offset) });
      return;
    }
    if (!mergedIntoInFlight(packet, offset)) {
      outcomes.suspend();
      // What is refused takes none: places by id are for so many that were accepted.
      packet.id = lastId + 1;
      const taken = sender.accept(packet);
      if (taken > 0) {
        lastId = packet.id;
        receipts.open(packet, accepted, nowNs);
        landing.track(packet, accepted, nowNs);
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
    const { bytes, account, keyId, receivedNs, maxRetries } = submission;
    const offset = peekSignatureOffset(bytes);
    if (offset >= 0 && inFlight(submission, offset, receivedNs)) {
      done({ kind: "accepted", signature: signatureText(bytes, offset) });
      return;
    }
    const packet = createPacket(lastId + 1, bytes, account, receivedNs, maxRetries, 0);
    submitted = packet;
    dispatch.accept(packet, (packet, validation) => {
      if (validation.kind === "accepted") {
        packet.priorityLamports = validation.priorityFeeLamports + validation.tipLamports;
        validations.accepted += 1;
        passOn(packet, keyId, validation, done);
      } else {
        validations.errorCounts[validation.errorCode] =
          (validations.errorCounts[validation.errorCode] ?? 0) + 1;
        done({ kind: "refused", rejection: rejectionOf(validation) });
      }
    });
    submitted = null;
  }

  function adopt(packet: Packet, keyId: string, accepted: Accepted, sent: SentSubmission): void {
    const { send, decodedNs, sentNs } = sent;
    validations.accepted += 1;
    lastId += 1;
    packet.id = lastId;
    outcomes.suspend();
    sender.recordSend(packet, send, sentNs);
    // Fronts do not know of each other's: the same transaction may have come in through two.
    const { bytes, maxRetries, receivedNs } = packet;
    const offset = accepted.signatureOffset;
    const isMerged = landing.mergeDuplicate(bytes, offset, maxRetries);
    receipts.open(packet, accepted, decodedNs, clock.nowNs());
    if (!isMerged) {
      landing.track(packet, accepted, decodedNs);
      usage?.taken(packet.id, keyId, receivedNs);
    }
    recordEarlyDuplicates(packet, offset);
    outcomes.flush();
  }

  return {
    submit,
    validations,
    adopt,
    repeated: recordDuplicate,
  };
}

/** Looks at once, a tenth of a millisecond, and with pauses: a front may be interrupted. */
const RESERVE_SPINS = 250;
const RESERVE_ATTEMPTS_MAX = 275;
const RESERVE_PAUSE_MS = 0.2;

const NO_LEADER_REJECTION: Rejection = {
  reason: "no_leader",
  message:
    "no leader can be reached now: no connection to the current or next leaders is live and " +
    "takes a transaction of this size",
  data: {},
};
const NO_LEADER: SubmitResult = { kind: "refused", rejection: NO_LEADER_REJECTION };
const LEADERS_FULL_REJECTION: Rejection = {
  reason: "overloaded",
  message:
    "every leader that is connected now has as many transactions waiting as may wait for it, " +
    "and each of them pays as much or more",
  data: {},
};
const LEADERS_FULL: SubmitResult = { kind: "refused", rejection: LEADERS_FULL_REJECTION };
