/**
 * The engine does what happens once for each transaction, and the edge what happens once for each
 * slot, connection, key change or poll. This is the border between them.
 *
 *   client ──▶ submit ──▶ duplicate? ─▶ validate ─▶ send ──▶ leaders
 *   router ──▶ usePlan         landing ──▶ resend              │
 *                                                              ▼
 *                                  EngineEvents: opened, duplicate, invalid, outcome
 *
 * There are two, which `test/conformance/engine.test.ts` compares: the portable one needs no
 * compiler, and the native one sends and validates in Rust, where its ingress threads accept
 * transactions too.
 *
 * Decision: docs/decisions/0056-one-tracker.md
 */

import type { Accepted, DecodeErrorCode, Outcome, Packet, Plan } from "../core/flow.ts";
import type { VerifierCounters } from "../decode/verify.ts";
import type { Dispatch } from "../decode/workers/dispatch.ts";
import type { DedupCache } from "../dedup/recent-transactions.ts";
import type { Submit } from "../http/submit/submission.ts";
import type { DeliveryGate, ResendTo } from "../landing/ports.ts";
import type { Identity } from "../send/identity.ts";
import type { SendRecord } from "../send/native/send-record.ts";
import type { SendCounters } from "../send/send-counters.ts";
import type { LeaderView } from "../send/sender.ts";
import type { Losses } from "../send/transport.ts";

/**
 * What an engine says of transactions: a transaction before its outcomes and before each duplicate
 * of it. `src/edge/tracker.ts` listens. Nothing here throws or calls the engine.
 */
export interface EngineEvents {
  /** The id of the next transaction; one that is not opened uses up none. */
  readonly nextId: number;
  /** A leader accepted a new transaction, which has the next id. */
  opened(packet: Packet, accepted: Accepted, keyId: string, plan: string, nowNs: number): void;
  /** A transaction that was accepted recently was submitted again. */
  duplicate(
    submitted: Pick<Packet, "bytes" | "account" | "maxRetries">,
    signatureOffset: number,
  ): void;
  /**
   * A valid transaction is about to be sent. True if it is one in flight, which is then sent by
   * `resend` alone. `entryNs`: of its entry in the engine's table of recent transactions; null: it
   * has none.
   */
  mergedIntoInFlight(packet: Packet, signatureOffset: number, entryNs: number | null): boolean;
  /** A transaction is valid, or has this error. */
  valid(): void;
  invalid(errorCode: DecodeErrorCode): void;
  /** What became of a delivery: optionally `sent`, then one of acked, failed and dropped. */
  outcome(outcome: Outcome): void;
}

export interface Engine extends DeliveryGate {
  readonly name: "portable" | "native";
  /**
   * Accepts a transaction whose key and limit were checked, or refuses it: as a decode error names,
   * `overloaded` where every leader's queue is full of transactions of the same or a higher rank,
   * and `no_leader`. It is sent once to each leader of the plan. Answers once, at once or when a
   * worker has validated it. A transaction that was accepted in the last 2 s is accepted without
   * being sent.
   */
  readonly submit: Submit;
  /** As `Sender.resend`: to leaders that have credit to spare, without a queue. */
  resend(packet: Packet, to: ResendTo): number;
  /** As `Sender.recordSend`: what an ingress thread of this engine sent, once it is opened. */
  recordSend(packet: Packet, sent: SendRecord, sentNs: number): void;
  /** The leaders to send to and to be connected to from now on. */
  usePlan(plan: Plan): void;
  /** The accounts' landed shares that changed; all that waits is ranked anew with the next plan. */
  useLandedShares(changed: ReadonlyMap<string, number>): void;
  /**
   * The identity for new connections; each open one is replaced, and closed when its deliveries are
   * acknowledged. @throws Error when it makes no certificate; the previous identity stays
   */
  useIdentity(identity: Identity): void;
  /** Says all that has happened so far, for a caller that is about to read what listens. */
  flushEvents(): void;
  /** Reads what ingress threads sent so far; does nothing without any. */
  reconcile(): void;
  leaders(): readonly LeaderView[];
  /** Connections that accept transactions, and those of them that the plan sends to now. */
  readonly liveCount: number;
  readonly sendableCount: number;
  /** Live connections that still use a previous identity. */
  readonly outdatedCount: number;
  readonly counters: Readonly<SendCounters>;
  losses(): Losses;
  /** Of recent transactions. */
  readonly duplicates: DedupCache["counters"];
  /** Validation on worker threads and on the calling thread. */
  readonly validation: Pick<Dispatch, "counters" | "depth" | "workersUp" | "verifierCounters">;
  readonly inlineVerifier: VerifierCounters;
  /** The native decoder, for ingress threads; null: the engine has none. */
  readonly decoderHandle: number | null;
  /** @throws Error when it cannot send from the configured addresses */
  start(): Promise<void>;
  /** Starts and ends the threads that validate; what they have is answered before they end. */
  startValidation(): Promise<void>;
  stopValidation(): Promise<void>;
  /** Accepts nothing more, waits shortly for acknowledgements, then ends every delivery. */
  stop(): Promise<void>;
}
