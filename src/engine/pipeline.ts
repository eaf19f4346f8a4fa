/**
 * The path of one transaction through the engine: submission, dedup, decode, send, account,
 * response. It is sent before its account is opened, because a leader that has it sooner may land
 * it sooner; a transaction that no leader accepted gets no account. The stages do not know each
 * other; only this file defines their order.
 *
 * Hot path: one closure per transaction, because its result may come from a worker later; with no
 * worker involved a transaction runs through all of this before `submit` returns.
 */

import type { Clock } from "../core/clock.ts";
import { rejectionOf } from "../core/decode-errors.ts";
import { encodeSignature } from "../core/encoding.ts";
import { LEADERS_FULL_REJECTION, NO_LEADER_REJECTION } from "../core/errors.ts";
import type { Accepted, Packet, SubmitResult } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import type { Decoder } from "../decode/decoder.ts";
import { peekSignatureOffset } from "../decode/transaction.ts";
import type { Dispatch } from "../decode/workers/dispatch.ts";
import type { DecodeDone } from "../decode/workers/worker-handle.ts";
import type { DedupCache, Reservation } from "../dedup/recent-transactions.ts";
import type { Submission, Submit } from "../http/submit/submission.ts";
import { sleepSync } from "../runtime/sleep-sync.ts";
import { ALL_FULL, type Sender } from "../send/sender.ts";
import type { EngineEvents } from "./engine.ts";

export interface PipelineDeps {
  readonly clock: Clock;
  readonly dedup: Pick<DedupCache, "query" | "insert" | "reserve" | "commit" | "rollback">;
  /**
   * Records what ingress threads sent, which write to `dedup` too; missing: this thread alone
   * writes to it.
   */
  readonly reconcile?: (() => void) | null;
  readonly dispatch: Pick<Dispatch, "accept">;
  /** Validates all but the signatures of what an ingress thread verified; null: all is verified. */
  readonly parser?: Pick<Decoder, "decode"> | null;
  readonly sender: Pick<Sender, "accept" | "report">;
  readonly events: EngineEvents;
  /** Encodes the signature at `offset` in base58; default `encodeSignature`. */
  readonly signatureText?: (bytes: Uint8Array, offset: number) => string;
}

type Done = (result: SubmitResult) => void;

export function createPipeline(deps: PipelineDeps): Submit {
  const { clock, dedup, dispatch, sender, events } = deps;
  const signatureText = deps.signatureText ?? encodeSignature;
  const reconcile = deps.reconcile ?? null;
  const parser = deps.parser ?? null;
  /** The packet that is being submitted now; null once `submit` has returned. */
  let submitted: Packet | null = null;

  /** Whether exactly these bytes were accepted recently; if so, records the duplicate. */
  function inFlight(submission: Submission, offset: number): boolean {
    if (!dedup.query(submission.bytes, offset, submission.receivedNs)) return false;
    reconcile?.();
    events.duplicate(submission, offset);
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
    const isLate = reconcile !== null || packet !== submitted;
    const reservation = isLate ? reserve(bytes, offset, nowNs) : null;
    if (reservation === "duplicate") {
      reconcile?.();
      events.duplicate(packet, offset);
      done({ kind: "accepted", signature: signatureText(bytes, offset) });
      return;
    }
    if (!events.mergedIntoInFlight(packet, offset, reservation === "new" ? nowNs : null)) {
      packet.id = events.nextId;
      const taken = sender.accept(packet);
      if (taken <= 0) {
        if (reservation === "new") dedup.rollback(bytes, offset);
        done(taken === ALL_FULL ? LEADERS_FULL : NO_LEADER);
        return;
      }
      events.opened(packet, accepted, keyId, plan, nowNs);
      sender.report(packet);
    }
    if (reservation === "new") dedup.commit(bytes, offset);
    else if (reservation === null) dedup.insert(bytes, offset, nowNs);
    done({ kind: "accepted", signature: signatureText(bytes, offset) });
  }

  function submit(submission: Submission, done: Done): void {
    const { bytes, account, keyId, plan, receivedNs, maxRetries, isVerified } = submission;
    const offset = peekSignatureOffset(bytes);
    if (offset >= 0 && inFlight(submission, offset)) {
      done({ kind: "accepted", signature: signatureText(bytes, offset) });
      return;
    }
    const packet = createPacket(events.nextId, bytes, account, receivedNs, maxRetries, 0);
    submitted = packet;
    const onDecoded: DecodeDone = (packet, validation) => {
      if (validation.kind === "accepted") {
        packet.offeredLamports = validation.priorityFeeLamports + validation.tipLamports;
        events.valid();
        passOn(packet, keyId, plan, validation, done);
      } else {
        events.invalid(validation.errorCode);
        done({ kind: "rejected", rejection: rejectionOf(validation) });
      }
    };
    if (isVerified && parser !== null) onDecoded(packet, parser.decode(bytes));
    else dispatch.accept(packet, onDecoded);
    submitted = null;
  }

  return submit;
}

/** Retries without pause for 0.1 ms, then with pauses: an ingress thread may be preempted. */
const RESERVE_SPINS = 250;
const RESERVE_ATTEMPTS_MAX = 275;
const RESERVE_PAUSE_MS = 0.2;

const NO_LEADER: SubmitResult = { kind: "rejected", rejection: NO_LEADER_REJECTION };
const LEADERS_FULL: SubmitResult = { kind: "rejected", rejection: LEADERS_FULL_REJECTION };
