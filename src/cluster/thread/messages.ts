/**
 * What the main thread and the cluster thread send each other.
 *
 * Every message has a bounded size, whatever a node responds: lists are cut off or rejected, and
 * long texts are replaced, before they are sent. Texts of a list are one string, because reading it
 * is one copy. `slot`, `processed`, `confirmed` and single blockhashes may come at any rate: the
 * cluster thread drops and counts them while the main thread has not read the last
 * `UPDATES_UNREAD_MAX`. Every other message follows a request, a poll, or a change.
 *
 * Decision: docs/decisions/0049-cluster-thread.md
 */

import type { ClusterClientOptions } from "../cluster-client.ts";
import type {
  BlockhashCheck,
  Consensus,
  SlotEventKind,
  SlotRange,
  SlotSource,
  StatusReporting,
} from "../ports.ts";
import type { ContactsMessage } from "./contact-changes.ts";
import type { EpochMessage } from "./epoch-message.ts";
import type { StatusesMessage } from "./status-message.ts";

/** A thread's random numbers are its own. */
export type ClusterThreadOptions = Partial<Omit<ClusterClientOptions, "random">> &
  Pick<ClusterClientOptions, "rpcUrl" | "wsUrl">;

/** The arguments of a cluster thread. */
export interface ClusterTask {
  readonly options: ClusterThreadOptions;
  /** The numbers of `CLUSTER_COUNTERS`; they outlive the thread. */
  readonly counters: SharedArrayBuffer;
  /** `CONTROL_WORDS` words that the main thread writes. */
  readonly control: SharedArrayBuffer;
}

/** How many messages that may be dropped the main thread has read, modulo 2^32. */
export const READ = 0;
/** 1 while transactions are in flight, whose age matters. */
export const BUSY = 1;
/** 1 once the thread may begin; until then it has loaded and waits. */
export const BEGUN = 2;
export const CONTROL_WORDS = 3;

export type ToClusterThread =
  /** At most `STATUSES_PER_REQUEST` signatures of 64 bytes each. */
  | { readonly kind: "statuses"; readonly id: number; readonly signatures: Uint8Array }
  /** At most `BLOCKHASHES_CHECKED_MAX` blockhashes of 32 bytes each. */
  | {
      readonly kind: "blockhashChecks";
      readonly id: number;
      readonly blockhashes: readonly Uint8Array[];
    }
  /** Whether the router accepted the epoch of that message. */
  | { readonly kind: "epochResult"; readonly id: number; readonly isAccepted: boolean }
  | { readonly kind: "wantBlockhashes" }
  | { readonly kind: "pollContactsNow" }
  /** From now on the thread reports the stake of this identity. */
  | { readonly kind: "identity"; readonly identity: string }
  /** The thread ends by itself; nothing follows. */
  | { readonly kind: "stop" };

export type FromClusterThread =
  | { readonly kind: "started" }
  | {
      readonly kind: "log";
      readonly level: "info" | "warn" | "error";
      readonly fields: object;
      readonly message: string;
    }
  | {
      readonly kind: "slot";
      readonly event: SlotEventKind;
      readonly slot: number;
      readonly source: SlotSource;
    }
  | { readonly kind: "slotTime"; readonly slotTimeMs: number }
  | EpochMessage
  | { readonly kind: "forgetEpochs" }
  | ContactsMessage
  /** Identities, one a line. */
  | { readonly kind: "delinquent"; readonly identities: string }
  /** The activated stake of the edge's identity. */
  | { readonly kind: "stake"; readonly identity: string; readonly lamports: number }
  | { readonly kind: "height"; readonly height: number; readonly sinceNs: number }
  | BlockhashesMessage
  | { readonly kind: "reporting"; readonly reporting: StatusReporting }
  | { readonly kind: "consensus"; readonly consensus: Consensus }
  | { readonly kind: "confirmationStalled"; readonly isStalled: boolean }
  | StatusesMessage
  | BlockhashChecksMessage
  | { readonly kind: "requestFailed"; readonly id: number; readonly reason: string }
  | { readonly kind: "quietRange"; readonly range: SlotRange }
  | ProcessedMessage
  | { readonly kind: "confirmed"; readonly slot: number; readonly bank: number | null }
  /** The ids of banks in earlier messages are not comparable with those in later ones. */
  | { readonly kind: "forgetBanks" };

/** Whether blockhashes are valid, in the order of the request; null for one without a result. */
export interface BlockhashChecksMessage {
  readonly kind: "blockhashChecks";
  /** The request's id. */
  readonly id: number;
  readonly checks: readonly (BlockhashCheck | null)[];
}

/** Blockhashes of 32 bytes each, oldest first, and the last height at which each is valid. */
export interface BlockhashesMessage {
  readonly kind: "blockhashes";
  readonly hashes: Uint8Array;
  readonly lastValidHeights: Float64Array;
  /** Whether these are all valid ones, as they were read. */
  readonly isComplete: boolean;
}

/** Signatures of 64 bytes each that blocks hold, the slot and the bank of each, and its error. */
export interface ProcessedMessage {
  readonly kind: "processed";
  readonly signatures: Uint8Array;
  readonly slots: Float64Array;
  /** -1 for one whose bank is unknown. */
  readonly banks: Float64Array;
  readonly errors: readonly (string | null)[];
}
