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
import { encodeSignature } from "../core/encoding.ts";
import type { Refusal } from "../core/errors.ts";
import { FAULT_COUNT, refusalOf } from "../core/faults.ts";
import type { Accepted, Answer, Packet } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import { peekSignatureOffset } from "../decode/transaction.ts";
import type { Dispatch } from "../decode/workers/dispatch.ts";
import type { Claim, Seen } from "../dedup/recent-transactions.ts";
import type { Submission, Submit } from "../http/submit/submission.ts";
import type { Landing } from "../landing/landing.ts";
import type { FrontSent } from "../native-ingress/record-consumer.ts";
import type { Receipts } from "../receipts/receipts.ts";
import { pause } from "../runtime/sleep-sync.ts";
import { ALL_FULL, type Sender } from "../send/sender.ts";
import { EarlyShares } from "./early-duplicates.ts";
import type { OutcomeRelay } from "./outcome-buffer.ts";

export interface PipelineDeps {
  readonly clock: Clock;
  readonly seen: Pick<Seen, "query" | "insert" | "claim" | "confirm" | "retract">;
  /** Whether other threads put into `seen`, too; not when not given. */
  readonly sharesSeen?: boolean;
  readonly dispatch: Pick<Dispatch, "accept">;
  readonly sender: Pick<Sender, "accept" | "adopt">;
  /** Holds what the sender tells of a packet until it is noted. */
  readonly outcomes: Pick<OutcomeRelay, "hold" | "release">;
  readonly landing: Pick<Landing, "track" | "join">;
  readonly receipts: Pick<Receipts, "open" | "share">;
  /** Counts for each key what becomes of its transactions; null when nobody does. */
  readonly usage: PacketUsage | null;
  /** Writes the signature at `offset` in base58; `encodeSignature` when not given. */
  readonly nameOf?: (bytes: Uint8Array, offset: number) => string;
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
  adopt(packet: Packet, keyId: string, accepted: Accepted, sent: FrontSent): void;
  /** A front was given again what it had passed on a moment ago. */
  repeated(submitted: Submitted, offset: number): void;
  /** Transactions with an accepting verdict. */
  readonly verdicts: PipelineVerdicts;
}

export interface PipelineVerdicts {
  accepted: number;
  /** By fault code. */
  readonly faults: number[];
}

type Done = (answer: Answer) => void;
type Submitted = Pick<Packet, "bytes" | "account" | "maxRetries">;

export function createPipeline(deps: PipelineDeps): Pipeline {
  const { clock, seen, dispatch, sender, outcomes, landing, receipts, usage } = deps;
  const nameOf = deps.nameOf ?? encodeSignature;
  const sharesSeen = deps.sharesSeen ?? false;
  const early = sharesSeen ? new EarlyShares() : null;
  const verdicts: PipelineVerdicts = {
    accepted: 0,
    faults: new Array<number>(FAULT_COUNT).fill(0),
  };
  /** Of the last packet that a leader took. */
  let lastId = 0;
  /** The packet that is being submitted now; null once `submit` has returned. */
  let submitted: Packet | null = null;

  /** Whether these very bytes were passed on a moment ago; notes that they came once more. */
  function inFlight(submitted: Submitted, offset: number, nowNs: number): boolean {
    if (!seen.query(submitted.bytes, offset, nowNs)) return false;
    share(submitted, offset);
    return true;
  }

  function share({ bytes, account, maxRetries }: Submitted, offset: number): void {
    const hasReceipt = receipts.share(bytes, offset, account);
    const isWatched = landing.join(bytes, offset, maxRetries);
    if (!hasReceipt && !isWatched) early?.keep(bytes, offset, { account, maxRetries });
  }

  /** What came before its transaction was noted. */
  function shareEarly({ bytes }: Packet, offset: number): void {
    if (early === null || early.size === 0) return;
    for (const again of early.take(bytes, offset)) share({ bytes, ...again }, offset);
  }

  /** Whether it joined one that is in flight; one signature that verifies is one transaction. */
  function joined({ bytes, account, maxRetries }: Packet, offset: number): boolean {
    if (!landing.join(bytes, offset, maxRetries)) return false;
    receipts.share(bytes, offset, account);
    return true;
  }

  /** A front that has it at this moment says within microseconds whether it sent it. */
  function claimOf(bytes: Uint8Array, offset: number, nowNs: number): Claim {
    let claim = seen.claim(bytes, offset, nowNs);
    for (let looks = 0; claim === "undecided" && looks < CLAIM_LOOKS_MAX; looks += 1) {
      if (looks >= CLAIM_LOOKS) pause(CLAIM_PAUSE_MS);
      claim = seen.claim(bytes, offset, nowNs);
    }
    return claim;
  }

  function passOn(packet: Packet, keyId: string, accepted: Accepted, done: Done): void {
    const { bytes } = packet;
    const offset = accepted.signatureOffset;
    const nowNs = clock.nowNs();
    // The same transaction may have come in twice: while a worker had the first, or to a front.
    const isLate = sharesSeen || packet !== submitted;
    const claim = isLate ? claimOf(bytes, offset, nowNs) : null;
    if (claim === "known") {
      share(packet, offset);
      done({ kind: "accepted", signature: nameOf(bytes, offset) });
      return;
    }
    if (!joined(packet, offset)) {
      outcomes.hold();
      // What is refused takes none: places by id are for so many that were accepted.
      packet.id = lastId + 1;
      const taken = sender.accept(packet);
      if (taken > 0) {
        lastId = packet.id;
        receipts.open(packet, accepted, nowNs);
        landing.track(packet, accepted, nowNs);
        usage?.taken(packet.id, keyId, packet.receivedNs);
        shareEarly(packet, offset);
      }
      outcomes.release();
      if (taken <= 0) {
        if (claim === "new") seen.retract(bytes, offset);
        done(taken === ALL_FULL ? LEADERS_FULL : NO_LEADER);
        return;
      }
    }
    if (claim === "new") seen.confirm(bytes, offset);
    else if (claim === null) seen.insert(bytes, offset, nowNs);
    done({ kind: "accepted", signature: nameOf(bytes, offset) });
  }

  function submit(submission: Submission, done: Done): void {
    const { bytes, account, keyId, receivedNs, maxRetries } = submission;
    const offset = peekSignatureOffset(bytes);
    if (offset >= 0 && inFlight(submission, offset, receivedNs)) {
      done({ kind: "accepted", signature: nameOf(bytes, offset) });
      return;
    }
    const packet = createPacket(lastId + 1, bytes, account, receivedNs, maxRetries, 0);
    submitted = packet;
    dispatch.accept(packet, (packet, verdict) => {
      if (verdict.kind === "accepted") {
        packet.priorityLamports = verdict.priorityFeeLamports + verdict.tipLamports;
        verdicts.accepted += 1;
        passOn(packet, keyId, verdict, done);
      } else {
        verdicts.faults[verdict.fault] = (verdicts.faults[verdict.fault] ?? 0) + 1;
        done({ kind: "refused", refusal: refusalOf(verdict) });
      }
    });
    submitted = null;
  }

  function adopt(packet: Packet, keyId: string, accepted: Accepted, sent: FrontSent): void {
    const { send, decodedNs, sentNs } = sent;
    verdicts.accepted += 1;
    lastId += 1;
    packet.id = lastId;
    outcomes.hold();
    sender.adopt(packet, send, sentNs);
    // Fronts do not know of each other's: the same transaction may have come in through two.
    const { bytes, maxRetries, receivedNs } = packet;
    const offset = accepted.signatureOffset;
    const isJoined = landing.join(bytes, offset, maxRetries);
    receipts.open(packet, accepted, decodedNs, clock.nowNs());
    if (!isJoined) {
      landing.track(packet, accepted, decodedNs);
      usage?.taken(packet.id, keyId, receivedNs);
    }
    shareEarly(packet, offset);
    outcomes.release();
  }

  return {
    submit,
    verdicts,
    adopt,
    repeated: share,
  };
}

/** Looks at once, a tenth of a millisecond, and with pauses: a front may be interrupted. */
const CLAIM_LOOKS = 250;
const CLAIM_LOOKS_MAX = 275;
const CLAIM_PAUSE_MS = 0.2;

const NO_LEADER_REFUSAL: Refusal = {
  reason: "no_leader",
  sentence:
    "no leader can be reached now: no connection to the current or next leaders is live and " +
    "takes a transaction of this size",
  data: {},
};
const NO_LEADER: Answer = { kind: "refused", refusal: NO_LEADER_REFUSAL };
const LEADERS_FULL_REFUSAL: Refusal = {
  reason: "overloaded",
  sentence:
    "every leader that is connected now has as many transactions waiting as may wait for it, " +
    "and each of them pays as much or more",
  data: {},
};
const LEADERS_FULL: Answer = { kind: "refused", refusal: LEADERS_FULL_REFUSAL };
