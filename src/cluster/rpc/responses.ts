/**
 * Converts RPC results to the types of this folder.
 *
 * Each reader takes the result of one method, reads only the needed fields, and throws with the
 * method's name if they are invalid: the caller counts that as a failure of the node. Invalid
 * entries of a list are skipped, because such lists are gathered from untrusted nodes.
 */

import { decodeBase58, decodeBase64 } from "../../core/encoding.ts";
import type { BlockhashCheck, Consensus, Contact, StatusResponse, TxStatus } from "../ports.ts";

/** A blockhash, and the last block height at which a transaction may use it. */
export interface Blockhash {
  /** 32 bytes. */
  readonly blockhash: Uint8Array;
  readonly lastValidHeight: number;
}

/** A confirmed block. */
export interface BlockStatus {
  readonly slot: number;
  readonly height: number;
  /** Transactions since genesis, up to this block; null from a node that does not return it. */
  readonly transactionCount: number | null;
}

/** The result of `getLeaderSchedule`: slots by identity; null if the epoch is not known yet. */
export function readLeaders(result: unknown): ReadonlyMap<string, readonly number[]> | null {
  if (result === null) return null;
  if (!isRecord(result)) throw new Error("getLeaderSchedule: the result is no map");
  const leaders = new Map<string, readonly number[]>();
  for (const [identity, indexes] of Object.entries(result)) {
    if (!Array.isArray(indexes)) throw new Error("getLeaderSchedule: no list of slots");
    // Indexes are validated when the schedule is built.
    leaders.set(identity, indexes as readonly number[]);
  }
  return leaders;
}

/** The result of `getClusterNodes`. */
export function readContacts(result: unknown): readonly Contact[] {
  if (!Array.isArray(result)) throw new Error("getClusterNodes: the result is no list");
  const contacts: Contact[] = [];
  for (const node of result as readonly unknown[]) {
    if (!isRecord(node)) continue;
    const identity = node["pubkey"];
    if (typeof identity !== "string") continue;
    const address = textOrNull(node["tpuQuic"]);
    contacts.push({ identity, address, version: textOrNull(node["version"]) });
  }
  return contacts;
}

/**
 * The result of `getRecentPerformanceSamples`: the mean slot time in milliseconds. Null if there
 * are no samples, as on a node up for less than a minute.
 */
export function readSlotTime(result: unknown): number | null {
  if (!Array.isArray(result)) throw new Error("getRecentPerformanceSamples: no list");
  let seconds = 0;
  let slots = 0;
  for (const sample of result as readonly unknown[]) {
    if (!isRecord(sample)) continue;
    const { numSlots, samplePeriodSecs } = sample;
    if (!isCount(numSlots) || !isCount(samplePeriodSecs) || numSlots === 0) continue;
    slots += numSlots;
    seconds += samplePeriodSecs;
  }
  return slots === 0 ? null : (seconds / slots) * 1_000;
}

/**
 * The result of `getAgGenesisCert`: null before the cluster migrated to Alpenglow, else its genesis
 * certificate. Agave `rpc/src/rpc.rs`, 4.4, 2026-11.
 */
export function readConsensus(result: unknown): Consensus {
  if (result === null) return "tower_bft";
  if (isRecord(result)) return "alpenglow";
  throw new Error("getAgGenesisCert: the result is no certificate");
}

/** The result of a method that returns one number. */
export function readCount(method: string, result: unknown): number {
  if (isCount(result)) return result;
  throw new Error(`${method}: the result is no count`);
}

/** The result of `getLatestBlockhash`. */
export function readBlockhash(result: unknown): Blockhash {
  const value = isRecord(result) ? result["value"] : null;
  const text = isRecord(value) ? value["blockhash"] : null;
  const lastValidHeight = isRecord(value) ? value["lastValidBlockHeight"] : null;
  const blockhash = typeof text === "string" ? decodeBase58(text, 32) : null;
  if (blockhash?.length !== 32 || !isCount(lastValidHeight)) {
    throw new Error("getLatestBlockhash: the result is no blockhash with its last block height");
  }
  return { blockhash, lastValidHeight };
}

/** The result of `isBlockhashValid`. */
export function readBlockhashCheck(result: unknown): BlockhashCheck {
  const context = isRecord(result) ? result["context"] : null;
  const slot = isRecord(context) ? context["slot"] : null;
  const isValid = isRecord(result) ? result["value"] : null;
  if (typeof isValid !== "boolean" || !isCount(slot)) {
    throw new Error("isBlockhashValid: the result is no boolean with its slot");
  }
  return { slot, isValid };
}

/** The result of `getBlock` with signatures alone; null for a slot without a block. */
export function readBlockSignatures(result: unknown): readonly string[] | null {
  if (result === null) return null;
  const signatures = isRecord(result) ? result["signatures"] : null;
  if (!Array.isArray(signatures)) throw new Error("getBlock: the result has no signatures");
  return (signatures as readonly unknown[]).filter((each) => typeof each === "string");
}

/** Entries of the recent blockhashes account: a hash and the signature fee, 8 bytes. */
const LISTED_BYTES = 40;
const HASH_BYTES = 32;

/**
 * The result of `getAccountInfo` for the recent blockhashes account, newest first; empty if the
 * node does not return it, because it is optional.
 */
export function readBlockhashList(result: unknown): readonly Uint8Array[] {
  const value = isRecord(result) ? result["value"] : null;
  const data = isRecord(value) ? value["data"] : null;
  const text: unknown = Array.isArray(data) ? data[0] : null;
  const bytes = typeof text === "string" ? decodeBase64(text) : null;
  if (bytes === null || bytes.length < 8) return [];
  const counted = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const count = Math.min(counted, Math.floor((bytes.length - 8) / LISTED_BYTES));
  return Array.from({ length: count }, (_, index) => {
    const start = 8 + index * LISTED_BYTES;
    return bytes.subarray(start, start + HASH_BYTES);
  });
}

/**
 * Assigns each hash of the list its last height by its distance from the latest one, newest first;
 * returns only the latest if the list does not contain it.
 */
export function placeBlockhashes(
  latest: Blockhash,
  list: readonly Uint8Array[],
): readonly Blockhash[] {
  const place = list.findIndex((hash) => Buffer.compare(hash, latest.blockhash) === 0);
  if (place < 0) return [latest];
  return list.map((blockhash, index) => ({
    blockhash,
    lastValidHeight: latest.lastValidHeight + place - index,
  }));
}

/** Epoch lengths. */
export interface EpochSchedule {
  readonly slotsPerEpoch: number;
  readonly firstNormalEpoch: number;
}

/** The result of `getEpochSchedule`. */
export function readEpochSchedule(result: unknown): EpochSchedule {
  const { slotsPerEpoch, firstNormalEpoch } = fieldsOf(result);
  if (!isCount(slotsPerEpoch) || !isCount(firstNormalEpoch)) {
    throw new Error("getEpochSchedule: the result is no schedule of epochs");
  }
  return { slotsPerEpoch, firstNormalEpoch };
}

/** A young cluster's epochs double from this size. Agave `MINIMUM_SLOTS_PER_EPOCH`, 2026-11. */
const FIRST_EPOCH_SLOTS = 32;

export function slotsInEpoch(schedule: EpochSchedule, epoch: number): number {
  const { slotsPerEpoch, firstNormalEpoch } = schedule;
  return epoch < firstNormalEpoch ? FIRST_EPOCH_SLOTS * 2 ** epoch : slotsPerEpoch;
}

/** The result of `getEpochInfo`. */
export function readEpochInfo(result: unknown) {
  const { epoch, absoluteSlot: slot, slotIndex, slotsInEpoch: slots } = fieldsOf(result);
  if (!isCount(epoch) || !isCount(slot) || !isCount(slotIndex) || !isCount(slots)) {
    throw new Error("getEpochInfo: the result is no place in an epoch");
  }
  return { epoch, slot, slotIndex, slots };
}

/** The result of `getEpochInfo` at a commitment: the newest block that has it. */
export function readBlockStatus(result: unknown): BlockStatus {
  const { absoluteSlot: slot, blockHeight: height, transactionCount } = fieldsOf(result);
  if (!isCount(slot) || !isCount(height)) {
    throw new Error("getEpochInfo: the result has no slot and block height");
  }
  return { slot, height, transactionCount: isCount(transactionCount) ? transactionCount : null };
}

/** The result of `getVersion`: the version of the node's software. */
export function readVersion(result: unknown): string {
  const version = isRecord(result) ? result["solana-core"] : null;
  if (typeof version !== "string") throw new Error("getVersion: the result has no version");
  return version;
}

/** The result of `getGenesisHash`; null if invalid, because it is optional. */
export function readGenesis(result: unknown): string | null {
  return typeof result === "string" && decodeBase58(result, 32)?.length === 32 ? result : null;
}

function fieldsOf(result: unknown): Readonly<Record<string, unknown>> {
  return isRecord(result) ? result : {};
}

/** The result of `getSignatureStatuses`; a list of another length is rejected. */
export function readStatuses(result: unknown, count: number): StatusResponse {
  const context = isRecord(result) ? result["context"] : null;
  const slot = isRecord(context) ? context["slot"] : null;
  const value = isRecord(result) ? result["value"] : null;
  if (!Array.isArray(value) || value.length !== count || !isCount(slot)) {
    throw new Error(`getSignatureStatuses: the result is no list of ${count} statuses`);
  }
  return { slot, statuses: (value as readonly unknown[]).map(readStatus) };
}

function readStatus(status: unknown): TxStatus | null {
  if (status === null) return null;
  const slot = isRecord(status) ? status["slot"] : null;
  if (!isRecord(status) || !isCount(slot)) {
    throw new Error("getSignatureStatuses: a status without a slot");
  }
  const { err, confirmations, confirmationStatus } = status;
  // Nodes before 1.4 report no commitment; null confirmations then mean a rooted block.
  const named = typeof confirmationStatus === "string" ? confirmationStatus !== "processed" : null;
  return {
    slot,
    confirmed: named ?? confirmations === null,
    error: err === null || err === undefined ? null : JSON.stringify(err),
  };
}

/** The result of `getVoteAccounts`: identities whose vote accounts are all delinquent. */
export function readDelinquent(result: unknown): readonly string[] {
  const delinquent = isRecord(result) ? result["delinquent"] : null;
  const current = isRecord(result) ? result["current"] : null;
  if (!Array.isArray(delinquent) || !Array.isArray(current)) {
    throw new Error("getVoteAccounts: the result is no pair of lists");
  }
  const voting = new Set(identitiesIn(current));
  return identitiesIn(delinquent).filter((identity) => !voting.has(identity));
}

/**
 * The result of `getVoteAccounts`: the activated stake of each identity, in lamports. One with more
 * than 2^53 lamports, 9 million SOL, is rounded.
 */
export function readStakes(result: unknown): ReadonlyMap<string, number> {
  const lists = isRecord(result) ? [result["current"], result["delinquent"]] : [];
  const stakes = new Map<string, number>();
  for (const list of lists) {
    for (const account of Array.isArray(list) ? (list as readonly unknown[]) : []) {
      const identity = isRecord(account) ? account["nodePubkey"] : null;
      const stake = isRecord(account) ? account["activatedStake"] : null;
      if (typeof identity !== "string" || typeof stake !== "number" || stake < 0) continue;
      stakes.set(identity, (stakes.get(identity) ?? 0) + stake);
    }
  }
  return stakes;
}

function identitiesIn(accounts: readonly unknown[]): readonly string[] {
  const identities = new Set<string>();
  for (const account of accounts) {
    const identity = isRecord(account) ? account["nodePubkey"] : null;
    if (typeof identity === "string") identities.add(identity);
  }
  return [...identities];
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
