/**
 * The path of one transaction through the portable engine: submission, dedup, decode, send,
 * account, response. It is sent before its account is opened, because a leader that has it sooner
 * may land it sooner; a transaction that no leader accepted gets no account. The stages do not know
 * each other; only this file defines their order.
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
import { peekSignatureOffset } from "../decode/transaction.ts";
import type { Dispatch } from "../decode/workers/dispatch.ts";
import type { DecodeDone } from "../decode/workers/worker-handle.ts";
import type { DedupCache } from "../dedup/recent-transactions.ts";
import type { Submission, Submit } from "../http/submit/submission.ts";
import { ALL_FULL, type Sender } from "../send/sender.ts";
import type { EngineEvents } from "./engine.ts";

export interface PipelineDeps {
  readonly clock: Clock;
  readonly dedup: Pick<DedupCache, "query" | "insert">;
  readonly dispatch: Pick<Dispatch, "accept">;
  readonly sender: Pick<Sender, "accept" | "report">;
  readonly events: EngineEvents;
}

type Done = (result: SubmitResult) => void;

export function createPipeline(deps: PipelineDeps): Submit {
  const { clock, dedup, dispatch, sender, events } = deps;
  /** The packet that is being submitted now; null once `submit` has returned. */
  let submitted: Packet | null = null;

  /** Whether exactly these bytes were accepted recently; if so, records the duplicate. */
  function isRepeated(
    submission: Pick<Packet, "bytes" | "account" | "maxRetries">,
    offset: number,
    nowNs: number,
  ): boolean {
    if (!dedup.query(submission.bytes, offset, nowNs)) return false;
    events.duplicate(submission, offset);
    return true;
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
    // The same transaction may have arrived again while a worker had the first.
    if (packet === submitted || !isRepeated(packet, offset, nowNs)) {
      packet.id = events.nextId;
      const taken = sender.accept(packet);
      if (taken <= 0) {
        done(taken === ALL_FULL ? LEADERS_FULL : NO_LEADER);
        return;
      }
      events.opened(packet, accepted, keyId, plan, nowNs);
      sender.report(packet);
      dedup.insert(bytes, offset, nowNs);
    }
    done({ kind: "accepted", signature: encodeSignature(bytes, offset) });
  }

  function submit(submission: Submission, done: Done): void {
    const { bytes, account, keyId, plan, receivedNs, maxRetries } = submission;
    const offset = peekSignatureOffset(bytes);
    if (offset >= 0 && isRepeated(submission, offset, receivedNs)) {
      done({ kind: "accepted", signature: encodeSignature(bytes, offset) });
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
    dispatch.accept(packet, onDecoded);
    submitted = null;
  }

  return submit;
}

const NO_LEADER: SubmitResult = { kind: "rejected", rejection: NO_LEADER_REJECTION };
const LEADERS_FULL: SubmitResult = { kind: "rejected", rejection: LEADERS_FULL_REJECTION };
