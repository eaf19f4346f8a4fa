/**
 * What landing needs from the rest of an edge: the chain's view of blocks and statuses, and a way
 * to send once more. `edge-landing.ts` gives both; nothing here knows where they come from.
 */

import type { Packet, Target } from "../core/flow.ts";

/** What the cluster says of one transaction that is in a block. */
export interface TxStatus {
  /** The slot of that block. */
  readonly slot: number;
  /** Whether the cluster confirmed the block; a block that is only processed may vanish. */
  readonly confirmed: boolean;
  /** The network's error as JSON text; null for success. */
  readonly error: string | null;
}

/** Whether statuses are told at all: a node that drops them answers null for what landed, too. */
export type StatusReporting = "yes" | "no" | "unknown";

export interface StatusResponse {
  /** The slot that the answering node had processed. */
  readonly slot: number;
  /** In the order of the signatures; null for one that no recent block holds. */
  readonly statuses: readonly (TxStatus | null)[];
}

export interface ClusterView {
  /** The newest block height that is known; null before the first. */
  blockHeight(): number | null;
  /** `Clock.nowNs` of when that became known; where nobody says, when it was first read. */
  blockHeightNs?(): number;
  /**
   * The slot in progress, or the one that was in progress at a time, as far as announcements of
   * slots show that by now; null when not known.
   */
  currentSlot(atNs?: number): number | null;
  /** The last height at which these 32 bytes are a valid blockhash; null when not known. */
  lastValidHeight(blockhash: Uint8Array): number | null;
  /**
   * Asks a node for at most `STATUSES_PER_REQUEST` signatures of 64 bytes each, which are read at
   * once; rejects when it does not answer.
   */
  fetchStatuses(signatures: Uint8Array): Promise<StatusResponse>;
  /** Whether an answer of null means anything. */
  statusReporting(): StatusReporting;
}

/** Which leaders a resend goes to; called by the sender while `resend` runs. */
export interface ResendTo {
  /** Which resend of the packet it is, from 1 on. */
  readonly ordinal: number;
  wants(target: Target): boolean;
  /** The copy was taken on by that leader's connection. */
  accepted(target: Target): void;
}

export interface Resender {
  /** Offers a packet to the live leaders of the plan that `to` wants; answers how many took it. */
  resend(packet: Packet, to: ResendTo): number;
}
