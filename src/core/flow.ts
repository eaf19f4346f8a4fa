/**
 * The records that pass between the stages of an edge. Read this file first.
 *
 *   http ─Packet─▶ decode ─ValidationResult─▶ send ─Outcome─▶ landing, receipts
 *                                     route ─Plan─▶
 *
 * Each record is built in one place, with all fields present and in one order, so that the hot
 * path stays monomorphic. Byte arrays are views, never copies, unless a field says otherwise.
 */

import type { DeliveryReason, EndReason, Rejection } from "./errors.ts";

/** One submitted transaction on its way through the edge. */
export interface Packet {
  /**
   * Counts up from 1 over the packets that a leader accepted; provisional until one has accepted
   * this packet.
   */
  id: number;
  /**
   * The serialized transaction. The view is valid only until the function that received the packet
   * returns; code that keeps it longer must copy it.
   */
  readonly bytes: Uint8Array;
  /** The account of the API key that sent it. */
  readonly account: string;
  /** `Clock.nowNs` when the request's body was complete. */
  readonly receivedNs: number;
  /** The sender's `maxRetries`; null when not given. */
  readonly maxRetries: number | null;
  /**
   * Priority fee and tip in lamports. When a leader cannot take all, the order is by this, times
   * the share of the account's recent transactions that landed.
   */
  offeredLamports: number;
}

/** A valid transaction, with the offsets that later stages need. */
export interface Accepted {
  readonly kind: "accepted";
  /** -1 legacy, 0 or 1 for the versioned forms. */
  readonly version: -1 | 0 | 1;
  /** Start of the first signature, which identifies the transaction on the network. */
  readonly signatureOffset: number;
  readonly signatureCount: number;
  /** Start and size of the signed bytes. */
  readonly messageOffset: number;
  readonly messageSize: number;
  /** Start of the static account keys; key i is the signer of signature i. */
  readonly keysOffset: number;
  /** Start of the recent blockhash or durable nonce. */
  readonly blockhashOffset: number;
  /** Whether the blockhash is a durable nonce, which does not expire. */
  readonly durableNonce: boolean;
  /** The largest single tip found, in lamports. */
  readonly tipLamports: number;
  /** The sender's offer above the base fee in lamports, as far as the bytes show. */
  readonly priorityFeeLamports: number;
}

/** The index of an error's row in decode-errors.ts. */
export type DecodeErrorCode = number;

/** A rejected transaction: the error, and the two numbers of its message. */
export interface Rejected {
  readonly kind: "rejected";
  readonly errorCode: DecodeErrorCode;
  /** The value found; its unit depends on the error. */
  readonly found: number;
  /** The value needed; its unit depends on the error. */
  readonly needed: number;
}

export type ValidationResult = Accepted | Rejected;

/** The result that the client receives. */
export type SubmitResult =
  | { readonly kind: "accepted"; readonly signature: string }
  | { readonly kind: "rejected"; readonly rejection: Rejection };

/** One leader to send to or to keep connected. */
export interface Target {
  /** The leader's identity, base58. */
  readonly identity: string;
  /** Its QUIC address for transactions: "ip:port" or "[ipv6]:port". */
  readonly address: string;
  /** First slot, from now on, of this leader's window. */
  readonly slot: number;
}

/**
 * The leaders to use now. Replaced as one object when a slot, the schedule or a contact changes.
 */
export interface Plan {
  /** The slot of this plan. */
  readonly slot: number;
  /** The destinations of each transaction now, the current leader first. Addresses are unique. */
  readonly send: readonly Target[];
  /** Connections to hold open, by next window, including those of `send`. Addresses are unique. */
  readonly warm: readonly Target[];
}

/**
 * Whether a live leader of the plan that wants a packet again takes resends: one does, those that
 * want it are full, or none wants it.
 */
export type ResendRoom = "room" | "full" | "none";

/** Selects the leaders that get a packet again; called while `resend` runs. */
export interface ResendTo {
  /** The ordinal of the resend of this packet, from 1. */
  readonly ordinal: number;
  /** Whether that leader lacks the packet. */
  wants(target: Target): boolean;
  /** Whether a copy may leave; asked for each leader that wants it and has room. */
  mayLeave(): boolean;
  /** That leader's connection accepted the delivery; `isQueued`: it waits for its turn. */
  accepted(target: Target, isQueued: boolean): void;
}

/**
 * The outcome of one delivery.
 *
 *   (queued) ─▶ sent ─▶ acked | failed
 *       └─────▶ dropped
 *
 * `sent`: the bytes were written to a live connection. `acked`: the leader's QUIC stack has them
 * all. `failed`: sent, but the connection ended or the leader rejected the stream first. `dropped`:
 * never put on the wire. Every delivery ends as acked, failed or dropped, exactly once.
 */
export interface Outcome {
  readonly packetId: number;
  readonly identity: string;
  readonly address: string;
  /** The slot that this delivery was aimed at. */
  readonly slot: number;
  readonly kind: "sent" | "acked" | "failed" | "dropped";
  /** null for `sent` and `acked`. */
  readonly reason: DeliveryReason | null;
  /** `Clock.nowNs` when it happened. */
  readonly atNs: number;
  /** The connection's smoothed round trip at that time, in microseconds; 0 if unknown. */
  readonly rttUs: number;
  /**
   * How long the connection had accepted transactions when it received this delivery, in
   * milliseconds; below 0 when the delivery waited for the connection; NaN when no connection took
   * it.
   */
  readonly connectionAgeMs: number;
  /**
   * The send round of the delivery: 0 for the first, n for the nth resend. All deliveries of one
   * round have the same number.
   */
  readonly resend: number;
}

/**
 * How an accepted transaction ended: exactly one per transaction, and its last event. At any time:
 * accepted = landed + expired + dropped + still in flight.
 */
export interface FinalState {
  /** The first accepted packet with this signature. */
  readonly packetId: number;
  readonly kind: "landed" | "expired" | "dropped";
  /**
   * The slot of the block that holds it. For one that did not land: the slot of the last
   * unconfirmed block that was reported to hold it; 0 for none.
   */
  readonly slot: number;
  /**
   * Slots from the one in progress at receipt to `slot`; null if either is unknown, and if the
   * transaction had landed before it was received.
   */
  readonly slotDelta: number | null;
  /** The network's error as JSON text if the transaction landed and failed; else null. */
  readonly error: string | null;
  /** null when landed. */
  readonly reason: EndReason | null;
  /** `Clock.nowNs` when this became known. */
  readonly atNs: number;
}

/**
 * An accepted transaction is in a block that the cluster has not confirmed yet. This is the
 * earliest possible report and usually final; but the cluster may abandon the block, and then the
 * transaction is in flight again. Another block, also one of the same slot, is reported anew.
 * `FinalState` reports the result that holds.
 */
export interface ProcessedEvent {
  /** The slot of that block. */
  readonly slot: number;
  /** As in FinalState. */
  readonly slotDelta: number | null;
  /** As in FinalState. */
  readonly error: string | null;
  /** `Clock.nowNs` when this became known. */
  readonly atNs: number;
}
