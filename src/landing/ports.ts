/**
 * Interfaces that landing needs: the cluster's blocks and statuses, a way to resend, and a gate
 * that keeps two threads from sending the same copy. `src/edge` passes them to it.
 */

import type { Packet, ResendRoom, ResendTo } from "../core/flow.ts";

/** The status of a transaction that is in a block. */
export interface TxStatus {
  /** The slot of that block. */
  readonly slot: number;
  /** Whether the block is confirmed; a processed block may be abandoned. */
  readonly confirmed: boolean;
  /** The network's error as JSON text; null for success. */
  readonly error: string | null;
}

/** Whether the node reports statuses; one that drops them returns null for landed transactions. */
export type StatusReporting = "yes" | "no" | "unknown";

/**
 * What is known of a range of blocks: `empty`, none holds a transaction; `pending`, none so far,
 * and the last ones are not known yet; `unknown` otherwise.
 */
export type BlockContent = "empty" | "pending" | "unknown";

export interface StatusResponse {
  /** The slot that the responding node had processed. */
  readonly slot: number;
  /** In the order of the signatures; null for a signature that no recent block holds. */
  readonly statuses: readonly (TxStatus | null)[];
}

/** The node's response about one blockhash. */
export interface BlockhashCheck {
  /** The slot that the responding node had processed. */
  readonly slot: number;
  /** Whether a transaction with it would be valid in that slot. */
  readonly isValid: boolean;
}

export interface ClusterView {
  /** The newest known block height; null before the first. */
  blockHeight(): number | null;
  /** `Clock.nowNs` of when it became known; if absent, when it was first read. */
  blockHeightNs?(): number;
  /**
   * The current slot, or the slot at a past time as far as announcements show it by now; null if
   * unknown.
   */
  currentSlot(atNs?: number): number | null;
  /** The last height at which these 32 bytes are a valid blockhash; null if unknown. */
  lastValidHeight(blockhash: Uint8Array): number | null;
  /**
   * Requests at most `STATUSES_PER_REQUEST` signatures of 64 bytes each, which are read before it
   * returns; rejects if the node does not respond.
   */
  fetchStatuses(signatures: Uint8Array): Promise<StatusResponse>;
  /**
   * Requests whether blockhashes of 32 bytes each are valid; one result per blockhash, null for one
   * without a response; rejects if the node does not respond. If absent, none is requested.
   */
  checkBlockhashes?(
    blockhashes: readonly Uint8Array[],
  ): Promise<readonly (BlockhashCheck | null)[]>;
  /** Whether a null status is meaningful. */
  statusReporting(): StatusReporting;
  /** Whether the confirmed blocks from one slot to another hold any transaction. */
  contentOf(fromSlot: number, toSlot: number): BlockContent;
}

/**
 * What keeps several threads from sending copies of one transaction at the same time: the dedup
 * cache.
 */
export interface DeliveryGate {
  /**
   * Before a further copy of a transaction leaves at `nowNs`, so that until 2 s later no other
   * thread sends one without landing. False if a copy left after `sinceNs`, the newest that landing
   * knows of: it learns of that one soon, and must send none now.
   */
  renew(bytes: Uint8Array, sinceNs: number, nowNs: number): boolean;
  /**
   * Landing has stopped tracking a transaction that may still land. The engine sends its next
   * submission as a new one, unless a copy left after `sinceNs`, the newest that landing knows of.
   */
  forget(bytes: Uint8Array, sinceNs: number): void;
}

export interface Resender {
  /** Whether `resend` would offer a packet to a leader now. */
  roomFor(to: Pick<ResendTo, "wants">): ResendRoom;
  /** Offers a packet to the live leaders of the plan that `to` wants; returns how many accepted. */
  resend(packet: Packet, to: ResendTo): number;
}
