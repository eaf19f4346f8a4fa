/**
 * The methods of the simulated cluster's JSON-RPC, in the formats of the real one.
 *
 * It implements only what a client needs to follow leaders, build a transaction and see it land.
 * `sendTransaction` does not exist here, so that every landed transaction came through an edge.
 * Formats are those of Agave 4.3 (`rpc/src/rpc.rs`, checked 2026-11).
 */

import { createHash } from "node:crypto";
import { decodeBase58, decodeBase64, encodeBase64, encodeKey } from "../core/encoding.ts";
import type { Bank, Block, Commitment, Landed } from "./cluster-bank.ts";
import type { Calendar } from "./cluster-slots.ts";
import { LAMPORTS_PER_SIGNATURE, type Ledger } from "./ledger.ts";

export interface ClusterLeader {
  /** Base58. */
  readonly identity: string;
  /** Its QUIC address for transactions, "ip:port". */
  readonly address: string;
  /** Whether it has stopped voting, as `getVoteAccounts` reports it; may be a getter. */
  readonly delinquent?: boolean;
}

/** A subscription's behaviour: correct, rejected with -32601, or accepted and then silent. */
export type FeedManner = "works" | "unsupported" | "silent";

export interface ClusterFaults {
  readonly slotsUpdates: FeedManner;
  readonly slots: FeedManner;
  /** Slots beyond the real one in every fifth slot's first shred; 0 for none. */
  readonly bogusSlotsAhead: number;
  /** Offset of all slot updates, in slots; below 0: behind. */
  readonly skewSlots: number;
  /** Blocks beyond the real one in every third slot's height; 0 for none. */
  readonly heightsAhead: number;
  /** `getSignatureStatuses`; `silent`: null for every transaction, like a node that keeps none. */
  readonly statuses: FeedManner;
}

export const NO_FAULTS: ClusterFaults = {
  slotsUpdates: "works",
  slots: "works",
  bogusSlotsAhead: 0,
  skewSlots: 0,
  heightsAhead: 0,
  statuses: "works",
};

export interface RpcContext {
  readonly calendar: Calendar;
  readonly bank: Bank;
  readonly ledger: Ledger;
  readonly leaders: readonly ClusterLeader[];
  readonly unixMs: () => number;
  /** The node's current faults. */
  readonly faults: () => Pick<ClusterFaults, "statuses" | "heightsAhead">;
}

/** A JSON-RPC error that a method returns. */
export class RpcFault extends Error {
  override readonly name = "RpcFault";
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

type Params = readonly unknown[];
type Method = (context: RpcContext, params: Params) => unknown;

const VERSION = { "solana-core": "4.3.0", "feature-set": 3_718_597_879 };
const SLOT_LEADERS_MAX = 5000;
const STATUSES_MAX = 256;
/** Slots behind after which a validator is delinquent. Agave `rpc/src/rpc.rs`, 4.3, 2026-11. */
const DELINQUENT_SLOTS = 128;
/** An account's size in bytes besides its data, and lamports for two years of one byte. */
const RENT_OVERHEAD_BYTES = 128;
const RENT_LAMPORTS_PER_BYTE = 6960;

const METHODS: Readonly<Record<string, Method>> = {
  getHealth: () => "ok",
  getVersion: () => VERSION,
  getGenesisHash: ({ leaders }) => genesisOf(leaders),
  getIdentity: ({ leaders }) => ({ identity: leaders[0]?.identity }),
  getAgGenesisCert: genesisCertificate,
  getSlot: (context, params) => blockOf(context, params[0]).slot,
  getBlockHeight: (context, params) => reportedHeight(context, blockOf(context, params[0])),
  getEpochInfo,
  getEpochSchedule: ({ calendar }) => ({
    slotsPerEpoch: calendar.epochSlots,
    leaderScheduleSlotOffset: calendar.epochSlots,
    warmup: false,
    firstNormalEpoch: 0,
    firstNormalSlot: 0,
  }),
  getLeaderSchedule,
  getSlotLeader: (context, params) => context.calendar.leaderAt(blockOf(context, params[0]).slot),
  getSlotLeaders,
  getClusterNodes: ({ leaders }) => leaders.map(clusterNode),
  getVoteAccounts,
  getBlock,
  getLatestBlockhash(context, params) {
    const block = blockOf(context, params[0]);
    const lastValidBlockHeight = context.bank.lastValidHeight(block.height);
    return withContext(context, { blockhash: block.blockhash, lastValidBlockHeight });
  },
  isBlockhashValid: (context, params) =>
    withContext(
      context,
      context.bank.isBlockhashValid(text(params, 0), context.bank.reported("processed")),
    ),
  getSignatureStatuses,
  getBalance: (context, params) => withContext(context, context.ledger.balance(key(params, 0))),
  getAccountInfo,
  getMinimumBalanceForRentExemption: (_context, params) =>
    (RENT_OVERHEAD_BYTES + count(params, 0)) * RENT_LAMPORTS_PER_BYTE,
  getFeeForMessage,
  requestAirdrop({ bank }, params) {
    const airdrop = bank.airdrop(key(params, 0), BigInt(count(params, 1)));
    if (typeof airdrop === "string") return airdrop;
    throw new RpcFault(-32603, `Internal error: ${JSON.stringify(airdrop.err)}`);
  },
};

/** Executes one call; throws an `RpcFault` where the real RPC returns an error. */
export function callMethod(context: RpcContext, method: string, params: Params): unknown {
  const found = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
  if (found === undefined) throw new RpcFault(-32601, "Method not found");
  return found(context, params);
}

/** The genesis hash. A restarted cluster has other leaders and therefore another hash. */
function genesisOf(leaders: readonly ClusterLeader[]): string {
  const identities = leaders.map(({ identity }) => identity).join(" ");
  return encodeKey(createHash("sha256").update(identities).digest());
}

/** The height of the block, or for each third slot that of the fault. */
function reportedHeight(context: RpcContext, { slot, height }: Block): number {
  return slot % 3 === 0 ? height + context.faults().heightsAhead : height;
}

function getEpochInfo(context: RpcContext, params: Params): unknown {
  const { calendar } = context;
  const block = blockOf(context, params[0]);
  return {
    absoluteSlot: block.slot,
    blockHeight: reportedHeight(context, block),
    epoch: calendar.epochOf(block.slot),
    slotIndex: block.slot % calendar.epochSlots,
    slotsInEpoch: calendar.epochSlots,
    transactionCount: context.bank.transactionsUpTo(block),
  };
}

/** The certificate of Alpenglow's genesis block, without signatures; null before the migration. */
function genesisCertificate({ bank }: RpcContext): unknown {
  const { genesisSlot: slot } = bank;
  if (slot === null) return null;
  const id = createHash("sha256").update(`block id ${slot}`).digest();
  return { block: { slot, block_id: [...id] }, signature: { signature: [], bitmap: [] } };
}

/** Params are `[slot | null | config, config]`; returns null for an unknown epoch. */
function getLeaderSchedule(context: RpcContext, params: Params): unknown {
  const { calendar, bank } = context;
  const [first, second] = params;
  const asked = typeof first === "number" ? first : bank.slot;
  const epoch = calendar.epochOf(asked);
  if (epoch > calendar.epochOf(bank.slot) + 1 || asked < 0) return null;
  const leaders = calendar.leadersOf(epoch);
  const config = isRecord(first) ? first : second;
  const identity = isRecord(config) ? config["identity"] : undefined;
  if (typeof identity !== "string") return leaders;
  const own = leaders[identity];
  return own === undefined ? {} : { [identity]: own };
}

function getSlotLeaders({ calendar, bank }: RpcContext, params: Params): unknown {
  const start = count(params, 0);
  const limit = count(params, 1);
  if (limit > SLOT_LEADERS_MAX) {
    throw new RpcFault(-32602, `Invalid limit; max ${SLOT_LEADERS_MAX}`);
  }
  const epoch = calendar.epochOf(start + limit - 1);
  if (epoch > calendar.epochOf(bank.slot) + 1) {
    const message = `Invalid slot range: leader schedule for epoch ${epoch} is unavailable`;
    throw new RpcFault(-32602, message);
  }
  return Array.from({ length: limit }, (_, index) => calendar.leaderAt(start + index));
}

/** As in Agave 4: `tpu` and `tpuForwards` are always null. */
function clusterNode({ identity, address }: ClusterLeader): unknown {
  return {
    pubkey: identity,
    gossip: null,
    tvu: null,
    tpu: null,
    tpuQuic: address,
    tpuForwards: null,
    tpuForwardsQuic: null,
    tpuVote: null,
    serveRepair: null,
    rpc: null,
    pubsub: null,
    version: VERSION["solana-core"],
    clientId: "Agave",
    featureSet: VERSION["feature-set"],
    shredVersion: 1,
  };
}

/** A leader that has stopped voting is more than 128 slots behind, as in the real RPC. */
function getVoteAccounts({ leaders, bank }: RpcContext): unknown {
  const accountOf = ({ identity, delinquent = false }: ClusterLeader): unknown => {
    const behind = delinquent ? DELINQUENT_SLOTS + 1 : 0;
    return {
      votePubkey: identity,
      nodePubkey: identity,
      activatedStake: 1_000_000_000,
      epochVoteAccount: true,
      epochCredits: [],
      commission: 0,
      lastVote: Math.max(0, bank.reported("processed").slot - behind),
      rootSlot: Math.max(0, bank.block("finalized").slot - behind),
    };
  };
  const ofThose = (wanted: boolean): readonly unknown[] =>
    leaders.filter(({ delinquent = false }) => delinquent === wanted).map(accountOf);
  return { current: ofThose(false), delinquent: ofThose(true) };
}

function getSignatureStatuses(context: RpcContext, params: Params): unknown {
  const [signatures] = params;
  if (!Array.isArray(signatures)) throw new RpcFault(-32602, "Invalid params: expected an array");
  if (signatures.length > STATUSES_MAX) {
    throw new RpcFault(-32602, `Too many inputs provided; max ${STATUSES_MAX}`);
  }
  const { bank } = context;
  const manner = context.faults().statuses;
  if (manner === "unsupported") throw new RpcFault(-32601, "Method not found");
  return withContext(
    context,
    signatures.map((signature: unknown) => {
      if (manner === "silent") return null;
      const landed = typeof signature === "string" ? bank.reportedStatusOf(signature) : null;
      return landed === null ? null : signatureStatus(bank, landed);
    }),
  );
}

/** Signatures only; with Tower BFT every block holds a vote, as on a real network. */
function getBlock({ bank, unixMs }: RpcContext, params: Params): unknown {
  const slot = count(params, 0);
  const config = params[1];
  const detail = isRecord(config) ? config["transactionDetails"] : undefined;
  if (detail !== "signatures") throw new RpcFault(-32602, "Only signatures are available here");
  const content = bank.contentOf(slot);
  if (content === null) {
    const message = `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`;
    throw new RpcFault(-32007, message);
  }
  const { block, signatures } = content;
  const blockTime = Math.floor(unixMs() / 1000);
  const { blockhash, parent: parentSlot, height: blockHeight } = block;
  return { blockhash, parentSlot, blockHeight, blockTime, signatures };
}

function signatureStatus(bank: Bank, landed: Landed): unknown {
  const { slot, height, err } = landed;
  const confirmationStatus = bank.commitmentOf(landed);
  const depth = bank.reported("processed").height - height;
  return {
    slot,
    confirmations: confirmationStatus === "finalized" ? null : depth,
    err,
    status: err === null ? { Ok: null } : { Err: err },
    confirmationStatus,
  };
}

const RECENT_BLOCKHASHES = "SysvarRecentB1ockHashes11111111111111111111";
const LISTED_BYTES = 40;

/** The recent blockhashes account: their count, then each with the fee per signature. */
function recentBlockhashes(context: RpcContext, config: unknown): unknown {
  const blocks = context.bank.recent(commitmentIn(config) ?? "finalized");
  const data = Buffer.alloc(8 + blocks.length * LISTED_BYTES);
  data.writeBigUInt64LE(BigInt(blocks.length));
  for (const [index, { blockhash }] of blocks.entries()) {
    const start = 8 + index * LISTED_BYTES;
    data.set(decodeBase58(blockhash, 32) ?? [], start);
    data.writeBigUInt64LE(BigInt(LAMPORTS_PER_SIGNATURE), start + 32);
  }
  return withContext(context, {
    lamports: 42_706_560,
    owner: "Sysvar1111111111111111111111111111111111111",
    data: [encodeBase64(data), "base64"],
    executable: false,
    rentEpoch: 0,
    space: data.length,
  });
}

function getAccountInfo(context: RpcContext, params: Params): unknown {
  if (params[0] === RECENT_BLOCKHASHES) return recentBlockhashes(context, params[1]);
  const account = context.ledger.account(key(params, 0));
  if (account === null) return withContext(context, null);
  const { lamports, owner, data, executable } = account;
  return withContext(context, {
    lamports,
    owner,
    data: [encodeBase64(data), "base64"],
    executable,
    rentEpoch: 18_446_744_073_709_551_615n,
    space: data.length,
  });
}

/** The base fee only: the signer count is the first byte after a version byte. */
function getFeeForMessage(context: RpcContext, params: Params): unknown {
  const message = decodeBase64(text(params, 0));
  if (message === null || message.length < 4) throw new RpcFault(-32602, "invalid base64 encoding");
  const versioned = ((message[0] ?? 0) & 0x80) !== 0;
  const signers = message[versioned ? 1 : 0] ?? 0;
  return withContext(context, signers * LAMPORTS_PER_SIGNATURE);
}

/** The block of a config's commitment; finalized by default, as in Agave. */
function blockOf({ bank }: RpcContext, config: unknown): Block {
  return bank.reported(commitmentIn(config) ?? "finalized");
}

/** The commitment of a config, if any; throws for an unknown one. */
export function commitmentIn(config: unknown): Commitment | null {
  const commitment = isRecord(config) ? config["commitment"] : undefined;
  if (commitment === undefined || commitment === null) return null;
  if (commitment === "processed" || commitment === "confirmed" || commitment === "finalized") {
    return commitment;
  }
  throw new RpcFault(-32602, `Invalid params: unknown variant \`${String(commitment)}\`.`);
}

function withContext({ bank }: RpcContext, value: unknown): unknown {
  const { slot } = bank.reported("processed");
  return { context: { apiVersion: VERSION["solana-core"], slot }, value };
}

function text(params: Params, index: number): string {
  const value = params[index];
  if (typeof value !== "string") throw new RpcFault(-32602, "Invalid params: expected a string.");
  return value;
}

function key(params: Params, index: number): string {
  const value = text(params, index);
  if (decodeBase58(value, 32)?.length !== 32) throw new RpcFault(-32602, "Invalid param: Invalid");
  return value;
}

function count(params: Params, index: number): number {
  const value = params[index];
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new RpcFault(-32602, "Invalid params: expected u64.");
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
