/** Interfaces from the cluster stage to its consumers, and the types of what it reports. */

/** `start` and `end` of a slot as seen by the node, or the current slot in a poll's response. */
export type SlotEventKind = "start" | "end" | "polled";

/** The source of the event. */
export type SlotSource = "grpc" | "slotsUpdates" | "slot" | "polling";

/** The leaders of one epoch. */
export interface EpochLeaders {
  readonly epoch: number;
  readonly firstSlot: number;
  readonly slots: number;
  /** Identity in base58, and its slots relative to the epoch's first. */
  readonly leaders: ReadonlyMap<string, readonly number[] | Uint32Array>;
}

/** A node of the cluster. */
export interface Contact {
  readonly identity: string;
  /** Where it takes QUIC transactions; null if not published. */
  readonly address: string | null;
  /** Software version as published; null if not published. */
  readonly version: string | null;
}

/**
 * What the router learns of the cluster; that it takes this is checked in `src/edge/leaders.ts`. No
 * method may throw.
 */
export interface RouterSink {
  slotEvent(kind: SlotEventKind, slot: number, source: SlotSource): void;
  /** The slot time recently measured by a node, in milliseconds. */
  slotTimeHint(slotTimeMs: number): void;
  /** Returns whether the schedule was accepted: false if it is invalid. */
  setEpoch(epoch: EpochLeaders): boolean;
  /** The schedules set so far belong to another cluster. */
  forgetEpochs(): void;
  setContacts(contacts: readonly Contact[]): void;
  /** Leaders that have not voted for so long that their slots are most likely empty. */
  setDelinquent(identities: readonly string[]): void;
}

/** What a gRPC stream reports of transactions. No method may throw. */
export interface LandingSink {
  /**
   * A block that is not confirmed yet holds a transaction with one of the accounts. The signature
   * (64 bytes) is borrowed for the call. `bank` is the id of the block's bank; null if unknown.
   */
  processed(signature: Uint8Array, slot: number, error: string | null, bank: number | null): void;
  /** The cluster confirmed the block of a slot; may be reported several times. */
  confirmed(slot: number, bank: number | null): void;
  /** A stream opens, whose ids of banks are not comparable with those reported so far. */
  forgetBanks(): void;
}

/** What a cluster client learns. No method may throw. */
export interface ClusterSink extends Omit<RouterSink, "setEpoch">, LandingSink {
  /** Returns, or resolves with, whether the schedule was accepted. */
  setEpoch(epoch: EpochLeaders): boolean | Promise<boolean>;
  /** The activated stake of each identity, in lamports. */
  setStakes(stakes: ReadonlyMap<string, number>): void;
  /** It changed whether the node reports statuses. */
  setReporting(reporting: StatusReporting): void;
  /** The cluster's consensus became known, or changed. */
  setConsensus(consensus: Consensus): void;
  /** The confirmation stands still while slots pass, or no longer does. */
  setConfirmationStalled(isStalled: boolean): void;
  /** The slots that are known to hold no transaction changed. */
  setQuietRange(range: SlotRange): void;
  /** The highest confirmed block's height changed; `Clock.nowNs` of when it was first reported. */
  setHeight(height: number, sinceNs: number): void;
  /** A blockhash (32 bytes, borrowed for the call), valid up to and including that height. */
  addBlockhash(blockhash: Uint8Array, lastValidHeight: number): void;
  /** All valid blockhashes were read; those that follow in this turn are all of them. */
  blockhashesRead(): void;
}

/** Slots whose blocks hold no transaction after that of the first. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
}

/** The cluster's status of one transaction that is in a block. */
export interface TxStatus {
  /** The slot of that block. */
  readonly slot: number;
  /** Whether the cluster confirmed the block; a block that is only processed may be dropped. */
  readonly confirmed: boolean;
  /** The network's error as JSON text; null for success. */
  readonly error: string | null;
}

/** The node's response about one blockhash. */
export interface BlockhashCheck {
  /** The latest slot that the responding node had processed. */
  readonly slot: number;
  /** Whether a transaction with it would be valid in that slot. */
  readonly isValid: boolean;
}

/**
 * The cluster's consensus: `unknown` until a node reports it; a node older than Agave 4.3 does not.
 */
export type Consensus = "unknown" | "tower_bft" | "alpenglow";

/**
 * Whether the node reports statuses: one that does not keep them returns null for landed ones too.
 */
export type StatusReporting = "yes" | "no" | "unknown";

export interface StatusResponse {
  /** The latest slot that the responding node had processed. */
  readonly slot: number;
  /** In the order of the signatures; null for one that no recent block holds. */
  readonly statuses: readonly (TxStatus | null)[];
}
