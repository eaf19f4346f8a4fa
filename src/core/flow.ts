/**
 * The records that pass between the stages of an edge. Read this file first.
 *
 *   ingress ─Packet─▶ decode ─Verdict─▶ route ─Plan─▶ send ─Outcome─▶ observe
 *
 * Each record is built in one place, with all fields present and in one order, so that the hot
 * path stays monomorphic. Byte arrays are views, never copies, unless a field says otherwise.
 */

import type { DeliveryReason, EndReason, Rejection } from "./errors.ts";

/** One submitted transaction on its way through the edge. */
export interface Packet {
  /**
   * Counts up from 1 within this process, among those that a leader took: it is the packet's own
   * from the moment at which it is offered to them.
   */
  id: number;
  /**
   * The serialized transaction. The view is lent: it holds only until the function that was given
   * the packet returns, and who keeps it longer copies it.
   */
  readonly bytes: Uint8Array;
  /** The account whose key sent it. */
  readonly account: string;
  /** `Clock.nowNs` when the request's body was complete. */
  readonly receivedNs: number;
  /** The sender's `maxRetries`; null when not given. */
  readonly maxRetries: number | null;
  /** Priority fee and tip in lamports: who goes first where a leader cannot take all. */
  priorityLamports: number;
}

/** A transaction that leaders would take on, with the offsets that later stages need. */
export interface Accepted {
  readonly kind: "accepted";
  /** -1 legacy, 0 or 1 for the versioned forms. */
  readonly version: -1 | 0 | 1;
  /** Where the first signature starts; it names the transaction on the network. */
  readonly signatureOffset: number;
  readonly signatureCount: number;
  /** Where the signed bytes start, and how many they are. */
  readonly messageOffset: number;
  readonly messageSize: number;
  /** Where the static account keys start; key i is the signer of signature i. */
  readonly keysOffset: number;
  /** Where the recent blockhash or durable nonce starts. */
  readonly blockhashOffset: number;
  /** Whether the blockhash is a durable nonce, which does not age. */
  readonly durableNonce: boolean;
  /** The largest single tip found, in lamports. */
  readonly tipLamports: number;
  /** What the sender offers above the base fee, in lamports, as far as the bytes tell. */
  readonly priorityFeeLamports: number;
}

/** The index of a fault's row in faults.ts. */
export type DecodeErrorCode = number;

/** A transaction that is refused: which fault, and the two figures of its sentence. */
export interface Rejected {
  readonly kind: "refused";
  readonly errorCode: DecodeErrorCode;
  /** What was found; the fault says what it counts. */
  readonly found: number;
  /** What was needed; the fault says what it counts. */
  readonly needed: number;
}

export type ValidationResult = Accepted | Rejected;

/** What the client is told. */
export type SubmitResult =
  | { readonly kind: "accepted"; readonly signature: string }
  | { readonly kind: "refused"; readonly rejection: Rejection };

/** One leader to send to or to keep warm. */
export interface Target {
  /** The leader's identity, base58. */
  readonly identity: string;
  /** Where it takes QUIC transactions: "ip:port" or "[ipv6]:port". */
  readonly address: string;
  /** First slot, from now on, of this leader's window. */
  readonly slot: number;
}

/** Which leaders matter now. Replaced as a whole when a slot, the schedule or a contact changes. */
export interface Plan {
  /** The slot that this plan was made for. */
  readonly slot: number;
  /** Where each transaction goes now, the current leader first. No address twice. */
  readonly send: readonly Target[];
  /** Connections to hold open, by next turn, those of `send` included. No address twice. */
  readonly warm: readonly Target[];
}

/**
 * What became of one leader's copy.
 *
 *   (queued) ─▶ sent ─▶ acked | failed
 *       └─────▶ dropped
 *
 * `sent`: the bytes were written to a live connection. `acked`: the leader's QUIC stack has them
 * all. `failed`: sent, but the connection ended or the stream was refused first. `dropped`: never
 * put on the wire. Every copy ends as acked, failed or dropped, exactly once.
 */
export interface Outcome {
  readonly packetId: number;
  readonly identity: string;
  readonly address: string;
  /** The slot this copy was aimed at. */
  readonly slot: number;
  readonly kind: "sent" | "acked" | "failed" | "dropped";
  /** null for `sent` and `acked`. */
  readonly reason: DeliveryReason | null;
  /** `Clock.nowNs` when it happened. */
  readonly atNs: number;
  /** The connection's smoothed round trip at that time, in microseconds; 0 when not known. */
  readonly rttUs: number;
  /**
   * For how long the connection had taken transactions when it was given this copy, in
   * milliseconds; below 0 when the copy waited for the connection; NaN when no connection took it.
   */
  readonly connectionAgeMs: number;
  /**
   * Which sending of the transaction the copy belongs to: 0 for the first one, n for the nth time
   * that it was sent again. All copies of one such round have the same number.
   */
  readonly resend: number;
}

/**
 * How an accepted transaction ended: exactly once for each, and the last that is said of it.
 * accepted = landed + expired + dropped + still in flight, at any time.
 */
export interface FinalState {
  /** The packet that was accepted first with this signature. */
  readonly packetId: number;
  readonly kind: "landed" | "expired" | "dropped";
  /**
   * The slot of the block that holds it. Of one that did not land: of the block that held it when
   * it was last heard of, which the cluster had not confirmed; 0 for none.
   */
  readonly slot: number;
  /**
   * Slots from the one in progress at receipt to that; null unless both are known, and for what had
   * landed before it was received.
   */
  readonly slotDelta: number | null;
  /** The network's error as JSON text when it landed and failed there; else null. */
  readonly error: string | null;
  /** null when landed. */
  readonly reason: EndReason | null;
  /** `Clock.nowNs` when this became known. */
  readonly atNs: number;
}

/**
 * An accepted transaction was seen in a block that the cluster has not confirmed yet. That is as
 * early as it can be known, and usually the end; but the block may be left by the cluster, and then
 * the transaction is in flight again. What holds is told by its End.
 */
export interface ProcessedEvent {
  readonly packetId: number;
  /** The slot of that block. */
  readonly slot: number;
  /** As in End. */
  readonly slotDelta: number | null;
  /** As in End. */
  readonly error: string | null;
  /** `Clock.nowNs` when this became known. */
  readonly atNs: number;
}
