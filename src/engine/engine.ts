/**
 * The engine does what happens once for each transaction, and the edge what happens once for each
 * slot, connection, key change or poll. This is the border between them.
 *
 *   client ──▶ submit ──▶ duplicate? ─▶ validate ─▶ send ──▶ leaders
 *   router ──▶ usePlan         landing ──▶ resend              │
 *                                                              ▼
 *                                  EngineEvents: opened, duplicate, invalid, outcome
 *
 * There are two, which `test/conformance/engine.test.ts` compares. The portable one needs no
 * compiler: pipeline.ts has its steps. The native one is in Rust: `native/src/submit/path.rs` is
 * the path of each transaction, on the main thread by one call (native-submit.ts), and on ingress
 * threads without JavaScript. What it did is among its events (submission-reporter.ts), so it
 * reports a transaction some time after it was submitted, in order, and before by `flushEvents`.
 *
 * Decision: docs/decisions/0056-one-tracker.md
 */

import type { Accepted, DecodeErrorCode, Outcome, Packet, Plan } from "../core/flow.ts";
import type { VerifierCounters } from "../decode/verify.ts";
import type { Dispatch } from "../decode/workers/dispatch.ts";
import type { DedupCounters } from "../dedup/recent-transactions.ts";
import type { Submission, Submit, SubmitCall } from "../http/submit/submission.ts";
import type { DeliveryGate, Resender } from "../landing/ports.ts";
import type { Identity } from "../send/identity.ts";
import type { SenderStatus } from "../send/sender.ts";
import type { RingRecord } from "./submission-record.ts";

/** Whose submission it is. */
export type Submitter = Pick<Submission, "account" | "keyId" | "plan">;

/**
 * What an engine says of transactions: a transaction before its outcomes and before each duplicate
 * of it. `src/edge/tracker.ts` listens. Nothing here throws; `duplicate` may call `resend`.
 */
export interface EngineEvents {
  /** The id of the next transaction; one that is not opened uses up none. */
  readonly nextId: number;
  /**
   * A leader accepted a transaction at `nowNs`, which has the next id. One that is in flight is
   * opened again if no copy left for 2 s.
   */
  opened(packet: Packet, accepted: Accepted, keyId: string, plan: string, nowNs: number): void;
  /** A transaction that was accepted recently was submitted again. */
  duplicate(
    submitted: Pick<Packet, "bytes" | "account" | "maxRetries">,
    signatureOffset: number,
  ): void;
  /** A transaction is valid, or has this error. */
  valid(): void;
  invalid(errorCode: DecodeErrorCode): void;
  /** What became of a delivery: optionally `sent`, then one of acked, failed and dropped. */
  outcome(outcome: Outcome): void;
  /** An ingress thread answered a request, which counts as one of the HTTP server. */
  answered(record: RingRecord, submitter: Submitter): void;
}

/** What ingress threads share with the engine. */
export interface IngressResources {
  /** The native engine's handle, once it runs, and its decoder's. */
  engineHandle(): number;
  /** That of the path, which has the table of recent transactions. */
  pathHandle(): number;
  readonly decoder: number;
  /** Most bytes of events that waited to be read at once, since the last call. */
  takeUnreadBytesMax(): number;
}

export interface Engine extends DeliveryGate, Resender {
  readonly name: "portable" | "native";
  /**
   * Accepts a transaction whose key and limit were checked, or refuses it: as a decode error names,
   * `overloaded` where every leader's queue is full of transactions of the same or a higher rank,
   * and `no_leader`. It is sent once to each leader of the plan. Answers once, at once or when a
   * worker has validated it. A transaction that was accepted in the last 2 s is accepted without
   * being sent.
   */
  readonly submit: Submit;
  /** Submits the transaction of a JSON-RPC call in its usual form; null: the engine reads none. */
  readonly submitCall: SubmitCall | null;
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
  /** Its connections to leaders and what it sent on them. */
  readonly sender: SenderStatus;
  /** Of recent transactions. */
  readonly duplicates: Readonly<Pick<DedupCounters, "hits" | "evicted">>;
  /** Validation on worker threads and on the calling thread. */
  readonly validation: Pick<Dispatch, "counters" | "depth" | "workersUp" | "verifierCounters">;
  readonly inlineVerifier: VerifierCounters;
  /** Transactions that ingress threads decoded, and those that they held back in a burst. */
  readonly records: { readonly ingress: number; readonly corked: number };
  /** null: the engine has no ingress threads. */
  readonly ingress: IngressResources | null;
  /** @throws Error when it cannot send from the configured addresses */
  start(): Promise<void>;
  /** Starts and ends the threads that validate; what they have is answered before they end. */
  startValidation(): Promise<void>;
  stopValidation(): Promise<void>;
  /** Accepts nothing more, waits shortly for acknowledgements, then ends every delivery. */
  stop(): Promise<void>;
}
