/**
 * Requests to the cluster's RPC node.
 *
 * Results are decoded in `responses.ts`. Related calls share one request, because a request costs
 * more than its calls.
 *
 * Decision: docs/decisions/0025-own-json-rpc-client.md
 */

import type { Clock } from "../../core/clock.ts";
import { encodeKey, encodeSignatures } from "../../core/encoding.ts";
import type { ClusterCounters } from "../counters.ts";
import { RPC_RESPONSE_BYTES_MAX } from "../limits.ts";
import type { BlockhashCheck, Consensus, Contact, StatusResponse } from "../ports.ts";
import {
  openSlotSubscriber,
  type SlotSubscriber,
  type SlotSubscriberEvents,
} from "../slots/subscription.ts";
import { createRpcHttpClient } from "./http-client.ts";
import { type CallResult, createCaller, isTemporary, RpcError } from "./json-rpc.ts";
import {
  type Blockhash,
  type BlockStatus,
  placeBlockhashes,
  readBlockhash,
  readBlockhashCheck,
  readBlockhashList,
  readBlockSignatures,
  readBlockStatus,
  readConsensus,
  readContacts,
  readCount,
  readDelinquent,
  readEpochInfo,
  readEpochSchedule,
  readGenesis,
  readLeaders,
  readSlotTime,
  readStakes,
  readStatuses,
  readVersion,
  slotsInEpoch,
} from "./responses.ts";
import { withRetryAfter } from "./retry-after.ts";

export interface RpcOptions {
  readonly rpcUrl: string;
  readonly wsUrl: string;
  /** A request fails if its response is not complete within this time. */
  readonly timeoutMs: number;
}

/** An epoch's range of slots. */
export interface EpochSpan {
  readonly epoch: number;
  readonly firstSlot: number;
  readonly slots: number;
}

export interface EpochPair {
  /** The current slot. */
  readonly slot: number;
  readonly current: EpochSpan;
  readonly next: EpochSpan;
  /** The genesis hash, base58; null if the node does not return it. */
  readonly genesis: string | null;
}

/** The confirmed state of the cluster: the newest block, and the blockhashes. */
export interface BlockInfo extends BlockStatus {
  /** Newest first: all that a transaction may use, or only the latest. */
  readonly blockhashes: readonly Blockhash[];
}

/** What the cluster's vote accounts show. */
export interface Votes {
  /** Identities of the validators that have not voted for 128 slots. */
  readonly delinquent: readonly string[];
  /** The activated stake of each identity, in lamports. */
  readonly stakes: ReadonlyMap<string, number>;
}

export interface Rpc {
  /** The latest slot that the node processed. */
  slot(): Promise<number>;
  /** The latest slot that the cluster confirmed. */
  confirmedSlot(): Promise<number>;
  /** Null if the node is in step with its cluster; else its own words, such as "behind by 3". */
  health(): Promise<string | null>;
  /** The node's software version. */
  version(): Promise<string>;
  /** The cluster's consensus; `unknown` if the node, or a gateway before it, refuses the method. */
  consensus(): Promise<Consensus>;
  /** Slots by which the finalized slot is below the confirmed one. */
  finalizedLag(): Promise<number>;
  /** The slot time of the last minutes in milliseconds; null if the node has no samples. */
  slotTimeMs(): Promise<number | null>;
  epochs(): Promise<EpochPair>;
  /** The leaders of the epoch that contains the slot; null if the node does not know them yet. */
  leaders(slot: number): Promise<ReadonlyMap<string, readonly number[]> | null>;
  contacts(): Promise<readonly Contact[]>;
  /** The newest confirmed block. */
  blockStatus(): Promise<BlockStatus>;
  /** The same block, and the currently valid blockhashes. */
  blockInfo(): Promise<BlockInfo>;
  /** Whether blockhashes of 32 bytes each are valid; null for one without a result. */
  blockhashChecks(blockhashes: readonly Uint8Array[]): Promise<readonly (BlockhashCheck | null)[]>;
  /** Statuses of at most 256 signatures, 64 bytes each. */
  statuses(signatures: Uint8Array): Promise<StatusResponse>;
  /**
   * The signatures of a confirmed block; null for a slot without one.
   *
   * @throws RpcError also for a block that the node does not keep
   */
  blockSignatures(slot: number): Promise<readonly string[] | null>;
  votes(): Promise<Votes>;
  openSlotSubscriber(events: SlotSubscriberEvents): SlotSubscriber;
  /** Ends pending requests; they fail. */
  close(): void;
}

export interface RpcDeps {
  readonly clock: Clock;
  readonly counters: ClusterCounters;
}

/** A client; nothing is connected before the first request. */
export function createRpc({ clock, counters }: RpcDeps, options: RpcOptions): Rpc {
  const { rpcUrl: url, wsUrl, timeoutMs } = options;
  const post = { url, timeoutMs, bytesMax: RPC_RESPONSE_BYTES_MAX };
  const httpClient = withRetryAfter(createRpcHttpClient(clock, post), clock, counters);
  const { call, batch } = createCaller(httpClient);

  return {
    slot: async () => readCount("getSlot", await call("getSlot", [PROCESSED])),
    confirmedSlot: async () => readCount("getSlot", await call("getSlot", [CONFIRMED])),
    async health() {
      try {
        const result = await call("getHealth", []);
        return result === "ok" ? null : String(result);
      } catch (error) {
        if (error instanceof RpcError) return error.message;
        throw error;
      }
    },
    version: async () => readVersion(await call("getVersion", [])),
    async consensus() {
      try {
        return readConsensus(await call("getAgGenesisCert", []));
      } catch (error) {
        if (error instanceof RpcError && !isTemporary(error)) return "unknown";
        throw error;
      }
    },
    async finalizedLag() {
      const [confirmed, finalized] = await batch([CONFIRMED_SLOT, FINALIZED_SLOT]);
      return readCount("getSlot", wanted(confirmed)) - readCount("getSlot", wanted(finalized));
    },
    slotTimeMs: async () => readSlotTime(await call("getRecentPerformanceSamples", [SAMPLES])),
    async epochs() {
      // Reads everything each time: the same name may lead to another cluster than before.
      const [schedule, info, genesis] = await batch([EPOCH_SCHEDULE, EPOCH_INFO, GENESIS]);
      const epochSchedule = readEpochSchedule(wanted(schedule));
      const { epoch, slot, slotIndex, slots } = readEpochInfo(wanted(info));
      const firstSlot = slot - slotIndex;
      const nextSlots = slotsInEpoch(epochSchedule, epoch + 1);
      return {
        slot,
        current: { epoch, firstSlot, slots },
        next: { epoch: epoch + 1, firstSlot: firstSlot + slots, slots: nextSlots },
        genesis: readGenesis(given(genesis)),
      };
    },
    leaders: async (slot) => readLeaders(await call("getLeaderSchedule", [slot])),
    contacts: async () => readContacts(await call("getClusterNodes", [])),
    blockStatus: async () => readBlockStatus(await call(BLOCK.method, BLOCK.params)),
    async blockInfo() {
      const [block, latest, list] = await batch([BLOCK, LATEST, LIST]);
      const newest = readBlockhash(wanted(latest));
      return {
        ...readBlockStatus(wanted(block)),
        blockhashes: placeBlockhashes(newest, readBlockhashList(given(list))),
      };
    },
    async blockhashChecks(blockhashes) {
      const calls = blockhashes.map((blockhash) => ({
        method: "isBlockhashValid",
        params: [encodeKey(blockhash), PROCESSED],
      }));
      return (await batch(calls)).map((each) =>
        "result" in each ? readBlockhashCheck(each.result) : null,
      );
    },
    async statuses(signatures) {
      const names = encodeSignatures(signatures);
      const params = [names, { searchTransactionHistory: false }];
      return readStatuses(await call("getSignatureStatuses", params), names.length);
    },
    async blockSignatures(slot) {
      const detail = { transactionDetails: "signatures", rewards: false };
      const config = { ...detail, commitment: "confirmed", maxSupportedTransactionVersion: 0 };
      try {
        return readBlockSignatures(await call("getBlock", [slot, config]));
      } catch (error) {
        if (error instanceof RpcError && NO_BLOCK_CODES.has(error.code)) return null;
        throw error;
      }
    },
    async votes() {
      const result = await call("getVoteAccounts", []);
      return { delinquent: readDelinquent(result), stakes: readStakes(result) };
    },
    openSlotSubscriber: (events) => openSlotSubscriber(wsUrl, timeoutMs, events),
    close: httpClient.close,
  };
}

function wanted(each: CallResult | undefined): unknown {
  if (each !== undefined && "result" in each) return each.result;
  throw each?.error ?? new Error("no result");
}

/** For optional results. */
function given(each: CallResult | undefined): unknown {
  return each !== undefined && "result" in each ? each.result : null;
}

/** Slot skipped, block not there yet. Agave `rpc-client-api/src/custom_error.rs`, 4.3, 2026-11. */
const NO_BLOCK_CODES: ReadonlySet<number> = new Set([-32004, -32007, -32009]);
const PROCESSED = { commitment: "processed" };
const CONFIRMED = { commitment: "confirmed" };
const CONFIRMED_SLOT = { method: "getSlot", params: [CONFIRMED] };
const FINALIZED_SLOT = { method: "getSlot", params: [{ commitment: "finalized" }] };
const EPOCH_SCHEDULE = { method: "getEpochSchedule", params: [] };
const EPOCH_INFO = { method: "getEpochInfo", params: [PROCESSED] };
const GENESIS = { method: "getGenesisHash", params: [] };
/** Minutes over which the node averages its slot time. */
const SAMPLES = 3;
const BLOCK = { method: "getEpochInfo", params: [CONFIRMED] };
const LATEST = { method: "getLatestBlockhash", params: [CONFIRMED] };
/**
 * The account in which the network keeps the 150 blockhashes that are valid, for durable nonces:
 * `solana-sysvar`, `recent_blockhashes.rs`, 2026-11.
 */
const LIST = {
  method: "getAccountInfo",
  params: [
    "SysvarRecentB1ockHashes11111111111111111111",
    { commitment: "confirmed", encoding: "base64" },
  ],
};
