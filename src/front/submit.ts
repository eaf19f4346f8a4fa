// Hot path: everything here runs once for each transaction that a front takes.
/**
 * What a front does with a transaction by itself: the same steps in the same order as pipeline.ts,
 * as far as one thread can go alone. The engine has it before the main thread hears of it, and
 * whatever a front is not certain of it declines: the request is moved then, nothing of it done.
 *
 *     seen before? ─▶ decode, verify ─▶ claimed? ─▶ routes clear? ─▶ sent ─▶ record ─▶ answer
 */

import type { Clock } from "../core/clock.ts";
import { refusalOf } from "../core/faults.ts";
import type { Answer, Verdict } from "../core/flow.ts";
import { peekSignatureOffset } from "../decode/transaction.ts";
import type { KeyOwner } from "../ingress/gate.ts";
import type { Seen } from "../ingress/seen.ts";
import type { TrySubmit } from "../ingress/submit.ts";
import { type FrontSender, newFrontSend } from "../send/front-sender.ts";
import type { RecordWriter } from "./records.ts";

export interface FrontSubmitDeps {
  readonly clock: Clock;
  readonly seen: Pick<Seen, "query" | "claim" | "confirm" | "retract">;
  readonly decode: (bytes: Uint8Array) => Verdict;
  readonly sender: FrontSender;
  readonly records: RecordWriter;
  /** The place of the pass that the owner was found by; -1 where that was none. */
  readonly placeOf: (owner: KeyOwner) => number;
  /** Writes the signature at `offset` in base58. */
  readonly nameOf: (bytes: Uint8Array, offset: number) => string;
  /**
   * A record was written. `isUrgent`: the main thread is to read it at once; `isAwaited`: it will
   * before long, whether it is woken or not.
   */
  readonly onRecord: (isUrgent: boolean, isAwaited?: boolean) => void;
}

export function createFrontSubmit(deps: FrontSubmitDeps): TrySubmit {
  const { clock, seen, decode, sender, records, placeOf, nameOf, onRecord } = deps;
  const sent = newFrontSend();
  const note = {
    bytes: NO_BYTES,
    place: -1,
    receivedNs: 0.5,
    decodedNs: 0.5,
    sentNs: 0.5,
    bodyBytes: 0,
    maxRetries: null as number | null,
  };

  function repeated(bytes: Uint8Array, offset: number): Answer {
    note.decodedNs = clock.nowNs();
    records.repeated(note, offset);
    onRecord(false);
    return { kind: "accepted", signature: nameOf(bytes, offset) };
  }

  return (submission) => {
    const { bytes, owner, receivedNs, maxRetries } = submission;
    sender.heed(receivedNs);
    const place = placeOf(owner);
    if (place < 0) return "key";
    if (!records.hasRoom) return "books";
    note.bytes = bytes;
    note.place = place;
    note.receivedNs = receivedNs;
    note.bodyBytes = submission.bodyBytes;
    note.maxRetries = maxRetries;
    const peeked = peekSignatureOffset(bytes);
    if (peeked >= 0 && seen.query(bytes, peeked, receivedNs)) return repeated(bytes, peeked);
    const verdict = decode(bytes);
    note.decodedNs = clock.nowNs();
    if (verdict.kind === "refused") {
      records.refused(note, verdict);
      onRecord(false);
      return { kind: "refused", refusal: refusalOf(verdict) };
    }
    const offset = verdict.signatureOffset;
    // Another thread may have had it since it was asked for, or has it now: then whether it is
    // accepted is not known yet.
    const claim = seen.claim(bytes, offset, note.decodedNs);
    if (claim === "known") return repeated(bytes, offset);
    if (claim === "undecided") return "other";
    if (!sender.send(bytes, sent)) {
      seen.retract(bytes, offset);
      return "leaders";
    }
    note.sentNs = clock.nowNs();
    records.sent(note, verdict, sent);
    seen.confirm(bytes, offset);
    onRecord(sender.isUrgent, sender.isAwaited);
    return { kind: "accepted", signature: nameOf(bytes, offset) };
  };
}

const NO_BYTES: Uint8Array = new Uint8Array(0);
