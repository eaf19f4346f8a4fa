/**
 * What the chain stage feeds: the vocabulary of leaders, as this folder needs it.
 *
 * The router fits this shape; `edge.ts` is where the compiler checks it.
 */

/** `start` and `end` of a slot as seen by the node, or the slot in progress when it was asked. */
export type SlotEventKind = "start" | "end" | "polled";

/** Who says so. */
export type SlotSource = "grpc" | "slotsUpdates" | "slot" | "polling";

/** The leaders of one epoch. */
export interface EpochLeaders {
  readonly epoch: number;
  readonly firstSlot: number;
  readonly slots: number;
  /** Identity in base58, and its slots counted from the epoch's first. */
  readonly leaders: ReadonlyMap<string, readonly number[]>;
}

/** A node of the cluster. */
export interface Contact {
  readonly identity: string;
  /** Where it takes QUIC transactions; null when it does not say. */
  readonly address: string | null;
  /** Of its software, as it says; null when it does not. */
  readonly version: string | null;
}

export interface ClusterSink {
  slotEvent(kind: SlotEventKind, slot: number, source: SlotSource): void;
  /** The slot time that a node measured lately, in milliseconds. */
  slotTimeHint?(slotTimeMs: number): void;
  /** Answers whether it was taken: false where it makes no sense. */
  setEpoch(epoch: EpochLeaders): boolean;
  /** The schedules that were set are another cluster's. */
  forgetEpochs?(): void;
  setContacts(contacts: readonly Contact[]): void;
  /** Leaders that have not voted for so long that their slots are most likely empty. */
  setDelinquent?(identities: readonly string[]): void;
}

/** What the cluster says of one transaction that is in a block. */
export interface TxStatus {
  /** The slot of that block. */
  readonly slot: number;
  /** Whether the cluster confirmed the block; one that is only processed may vanish. */
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
