/**
 * The simulated cluster's blocks, blockhashes that age, and the transactions that land.
 *
 * A transaction lands when it reaches the leader of the slot in progress. A leader whose window is
 * one of the next two holds it; all other deliveries are dropped silently, as real leaders do.
 * Landed transactions are executed immediately, so their status is available within the slot. A
 * leader whose slots are all skipped loses what it holds.
 *
 * With Alpenglow a block holds no votes, it is finalized once the next one begins, and a block that
 * is given up takes its transactions with it. Those are only simulated: no state changes.
 */

import { createHash } from "node:crypto";
import { encodeKey, encodeSignature } from "../core/encoding.ts";
import { type Calendar, WINDOW_SLOTS } from "./cluster-slots.ts";
import type { Phase, SlotStep } from "./cluster-timeline.ts";
import type { Decoded, Ledger } from "./ledger.ts";
import type { LedgerError, RpcError } from "./ledger-errors.ts";
import { SANDBOX_HELD_MAX, SANDBOX_STATUSES_MAX } from "./limits.ts";

export type Commitment = "processed" | "confirmed" | "finalized";

export interface Block {
  readonly slot: number;
  /** From 1 on; different for each block, also for those of one slot. */
  readonly bankId: number;
  readonly parent: number;
  /** Blocks up to and including this one; skipped slots do not count. */
  readonly height: number;
  readonly blockhash: string;
}

/** A block's content: its leader's vote with Tower BFT, then the landed transactions. */
export interface BlockContent {
  readonly block: Block;
  readonly signatures: readonly string[];
}

/** A transaction that is in a block. */
export interface Landed {
  readonly signature: string;
  readonly slot: number;
  readonly bankId: number;
  readonly height: number;
  /** In the form of JSON-RPC; null for success. */
  readonly err: RpcError | null;
  /** The leader of the block; null for an airdrop. */
  readonly leader: string | null;
}

export class BankCounters {
  received = 0;
  landed = 0;
  /** Landed in a block that was given up; counted in `landed` too. */
  landedGivenUp = 0;
  /** Landed with an error. */
  landedFailed = 0;
  /** Duplicates of transactions that landed or are held. */
  duplicates = 0;
  /** Not a transaction. */
  undecodable = 0;
  /** The leader's window was not one of the next two. */
  outOfTurn = 0;
  blockhashNotFound = 0;
  /** Execution failed in a way that keeps the transaction out of the block. */
  rejected = 0;
  /** Held for a window that passed without a block, or above the bound. */
  heldLost = 0;
  /** Received or held while blocks hold votes only. */
  voteOnlyLost = 0;
  blocks = 0;
  /** Blocks for which another one of the same slot was made. */
  blocksGivenUp = 0;
  skipped = 0;
  stalls = 0;
  migrations = 0;
  /** Slots in which `processed` is reported below `confirmed`. */
  behind = 0;
}

export interface BankDeps {
  readonly calendar: Calendar;
  readonly ledger: Ledger;
  /** Called when a transaction lands. */
  readonly onLanded: (landed: Landed) => void;
  /** Blocks after which a blockhash is too old. */
  readonly blockhashAgeMax: number;
}

/** Number of blocks behind the newest at which a block is confirmed, and finalized. */
const DEPTHS = {
  tower_bft: { confirmed: 1, finalized: 31 },
  alpenglow: { confirmed: 1, finalized: 1 },
} as const;
/** Blocks by which a node that is behind reports `processed` below `confirmed`. */
const BEHIND_BLOCKS = 2;
/** Size of the recent blockhashes account: `solana-sysvar`, 2026-11. */
const LISTED_BLOCKHASHES_MAX = 150;
/** Windows after the current one whose leaders hold the transactions they receive. */
const HOLD_WINDOWS = 2;

interface Held {
  readonly identity: string;
  readonly decoded: Decoded;
}

export function createBank(deps: BankDeps): Bank {
  return new Bank(deps);
}

export class Bank {
  readonly counters = new BankCounters();
  readonly #deps: BankDeps;
  /** Oldest first, at most twice `blockhashAgeMax`. */
  readonly #blocks: Block[];
  readonly #heights = new Map<string, number>();
  readonly #landed = new Map<string, Landed>();
  /** The leaders' own votes, one per block: they have a status like every transaction. */
  readonly #votes = new Map<string, Landed>();
  #held: Held[] = [];
  #slot: number;
  #phase: Phase = "tower_bft";
  #genesisSlot: number | null = null;
  /** Whether the slot in progress has a block. */
  #open = false;
  /** Whether the newest block will be given up. */
  #isGivenUp = false;
  #isBehind = false;
  #confirmedHeight: number;
  #finalizedHeight: number;
  #bankId = 1;
  /** Transactions in all blocks, and in those before each block by its id. */
  #transactions = 0;
  readonly #transactionsBefore = new Map<number, number>();

  constructor(deps: BankDeps) {
    this.#deps = deps;
    const slot = deps.calendar.firstSlot - 1;
    this.#slot = slot;
    this.#blocks = [];
    this.#confirmedHeight = slot;
    this.#finalizedHeight = slot;
    this.#append(slot, slot - 1, slot);
  }

  get slot(): number {
    return this.#slot;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** The slot of the last block before Alpenglow; null with Tower BFT. */
  get genesisSlot(): number | null {
    return this.#genesisSlot;
  }

  /** Enters a slot; begins a block unless the slot is skipped. */
  enter({ slot, phase, isSkipped, isGivenUp, isBehind }: SlotStep): Block | null {
    this.#slot = slot;
    this.#phase = phase;
    if (phase === "alpenglow") this.#genesisSlot ??= this.block("processed").slot;
    this.#open = !isSkipped;
    this.#isGivenUp = isGivenUp;
    this.#isBehind = isBehind;
    if (isSkipped) this.counters.skipped += 1;
    if (isBehind) this.counters.behind += 1;
    const block = this.#open ? this.#openBlock(slot) : null;
    this.#settleHeld();
    return block;
  }

  /** Gives up the newest block, and begins another one in the same slot. */
  beginAgain(): Block {
    const block = this.#blocks.pop();
    if (block === undefined) throw new RangeError("a bank has at least its first block");
    this.counters.blocksGivenUp += 1;
    this.counters.landedGivenUp += this.#remove(block);
    this.#isGivenUp = false;
    return this.#openBlock(block.slot);
  }

  /** Ends the slot in progress; until the next one nothing lands. */
  stall(): void {
    this.#open = false;
    this.counters.stalls += 1;
  }

  /** Deletes the blocks after Alpenglow's genesis block, whose slot becomes the current one. */
  migrate(genesisSlot: number): void {
    this.#open = false;
    this.counters.migrations += 1;
    for (let newest = this.block("processed"); newest.slot > genesisSlot; ) {
      this.#remove(newest);
      this.#blocks.pop();
      newest = this.block("processed");
    }
    this.#slot = genesisSlot;
    const { height } = this.block("processed");
    this.#confirmedHeight = height;
    this.#finalizedHeight = height;
  }

  receive(identity: string, bytes: Uint8Array): void {
    this.counters.received += 1;
    const decoded = this.#deps.ledger.decode(bytes);
    if (decoded === null) {
      this.counters.undecodable += 1;
      return;
    }
    if (this.#phase === "vote_only") this.counters.voteOnlyLost += 1;
    else if (this.#open && this.#deps.calendar.leaderAt(this.#slot) === identity) {
      this.#land(identity, decoded);
    } else this.#hold(identity, decoded);
  }

  /** The signature of the airdrop, or why there is none: its amount is too small or too large. */
  airdrop(address: string, amount: bigint): string | LedgerError {
    const error = this.#deps.ledger.airdrop(address, amount);
    if (error !== null) return error;
    const digest = createHash("sha512").update(`${address} ${amount} ${this.#landed.size}`);
    const signature = encodeSignature(digest.digest());
    this.#record({ signature, ...this.#place(), err: null, leader: null });
    return signature;
  }

  /** The newest block that has reached a commitment. */
  block(commitment: Commitment): Block {
    return this.#blockAt(this.#heightOf(commitment));
  }

  /** The same as the node reports it; the processed one may be older than the confirmed one. */
  reported(commitment: Commitment): Block {
    const height = this.#heightOf(commitment);
    return this.#blockAt(
      this.#isBehind && commitment === "processed" ? height - BEHIND_BLOCKS : height,
    );
  }

  /** The confirmed blocks above a height, oldest first. */
  confirmedAfter(height: number): readonly Block[] {
    const first = Math.max(0, this.#indexOf(height + 1));
    return this.#blocks.slice(first, Math.max(first, this.#indexOf(this.#confirmedHeight) + 1));
  }

  /** That block and earlier ones, newest first: as many as a real cluster lists hashes of. */
  recent(commitment: Commitment): readonly Block[] {
    const end = this.#blocks.length - (this.block("processed").height - this.#heightOf(commitment));
    const count = Math.min(LISTED_BLOCKHASHES_MAX, this.#deps.blockhashAgeMax);
    return this.#blocks.slice(Math.max(0, end - count), Math.max(1, end)).reverse();
  }

  statusOf(signature: string): Landed | null {
    return this.#landed.get(signature) ?? this.#votes.get(signature) ?? null;
  }

  /** The same as the node reports it, from the block that it reports as processed. */
  reportedStatusOf(signature: string): Landed | null {
    const landed = this.statusOf(signature);
    return landed === null || landed.height > this.reported("processed").height ? null : landed;
  }

  /** A confirmed block with its signatures; null if there is none, or no longer. */
  contentOf(slot: number): BlockContent | null {
    const block = this.#blocks.find((each) => each.slot === slot);
    if (block === undefined || block.height > this.#confirmedHeight) return null;
    const landed = [...this.#landed.values()].filter(({ bankId }) => bankId === block.bankId);
    const vote = voteOf(block);
    const votes = this.#votes.has(vote) ? [vote] : [];
    return { block, signatures: [...votes, ...landed.map(({ signature }) => signature)] };
  }

  commitmentOf({ height }: Landed): Commitment {
    if (height <= this.#finalizedHeight) return "finalized";
    return height <= this.#confirmedHeight ? "confirmed" : "processed";
  }

  /** Whether a transaction with it may be in the block after `at`; by default, the newest. */
  isBlockhashValid(blockhash: string, at: Block = this.block("processed")): boolean {
    const height = this.#heights.get(blockhash);
    if (height === undefined || height > at.height) return false;
    return at.height <= this.lastValidHeight(height);
  }

  /** The last height at which the blockhash of a block at this height is valid. */
  lastValidHeight(height: number): number {
    return height + this.#deps.blockhashAgeMax;
  }

  /** Transactions in the blocks up to one of them, votes included. */
  transactionsUpTo({ height }: Block): number {
    const next = this.#blocks[this.#indexOf(height) + 1];
    if (next === undefined) return this.#transactions;
    return this.#transactionsBefore.get(next.bankId) ?? this.#transactions;
  }

  #openBlock(slot: number): Block {
    const before = this.block("processed");
    const block = this.#append(slot, before.slot, before.height + 1);
    this.counters.blocks += 1;
    if (this.#phase === "vote_only") return block;
    const { confirmed, finalized } = DEPTHS[this.#phase];
    this.#confirmedHeight = Math.max(this.#confirmedHeight, block.height - confirmed);
    this.#finalizedHeight = Math.max(this.#finalizedHeight, block.height - finalized);
    return block;
  }

  #append(slot: number, parent: number, height: number): Block {
    const bankId = this.#bankId;
    this.#bankId += 1;
    const block = { slot, bankId, parent, height, blockhash: blockhashOf(slot, bankId) };
    this.#blocks.push(block);
    this.#heights.set(block.blockhash, height);
    this.#transactionsBefore.set(bankId, this.#transactions);
    if (this.#phase !== "alpenglow") {
      const signature = voteOf(block);
      this.#votes.set(signature, { signature, slot, bankId, height, err: null, leader: null });
      this.#transactions += 1;
    }
    // Blockhashes are kept for twice their lifetime, as in Agave's queue.
    const most = 2 * this.#deps.blockhashAgeMax;
    if (this.#blocks.length > most) {
      for (const old of this.#blocks.splice(0, this.#blocks.length - most)) this.#forget(old);
    }
    return block;
  }

  /** Removes what belongs to a block, except for the transactions that landed in it. */
  #forget(block: Block): void {
    this.#heights.delete(block.blockhash);
    this.#votes.delete(voteOf(block));
    this.#transactionsBefore.delete(block.bankId);
  }

  /** Removes what belongs to the newest block; returns how many leaders' transactions it held. */
  #remove(block: Block): number {
    this.#transactions = this.#transactionsBefore.get(block.bankId) ?? this.#transactions;
    this.#forget(block);
    let count = 0;
    for (const { signature, bankId, leader } of this.#landed.values()) {
      if (bankId !== block.bankId) continue;
      this.#landed.delete(signature);
      if (leader !== null) count += 1;
    }
    return count;
  }

  #heightOf(commitment: Commitment): number {
    if (commitment === "processed") return this.#blocks.at(-1)?.height ?? 0;
    return commitment === "confirmed" ? this.#confirmedHeight : this.#finalizedHeight;
  }

  #indexOf(height: number): number {
    return height - (this.#blocks[0]?.height ?? 0);
  }

  /** The block at this height, or the oldest one that is kept. */
  #blockAt(height: number): Block {
    const block = this.#blocks[Math.max(0, this.#indexOf(height))];
    if (block === undefined) throw new RangeError("a bank has at least its first block");
    return block;
  }

  #place(): Pick<Landed, "slot" | "bankId" | "height"> {
    const { slot, bankId, height } = this.block("processed");
    return { slot, bankId, height };
  }

  #land(identity: string, decoded: Decoded): void {
    if (this.#landed.has(decoded.signature)) {
      this.counters.duplicates += 1;
      return;
    }
    if (!this.isBlockhashValid(decoded.blockhash)) {
      this.counters.blockhashNotFound += 1;
      return;
    }
    const { ledger } = this.#deps;
    const error = this.#isGivenUp ? ledger.simulate(decoded) : ledger.execute(decoded);
    if (error !== null && !error.lands) {
      this.counters.rejected += 1;
      return;
    }
    this.counters.landed += 1;
    if (error !== null) this.counters.landedFailed += 1;
    const { signature } = decoded;
    this.#record({ signature, ...this.#place(), err: error?.err ?? null, leader: identity });
  }

  #record(landed: Landed): void {
    this.#landed.set(landed.signature, landed);
    this.#transactions += 1;
    if (this.#landed.size > SANDBOX_STATUSES_MAX) {
      for (const oldest of this.#landed.keys()) {
        this.#landed.delete(oldest);
        break;
      }
    }
    this.#deps.onLanded(landed);
  }

  #hold(identity: string, decoded: Decoded): void {
    if (!this.#leadsSoon(identity)) this.counters.outOfTurn += 1;
    else if (this.#held.length >= SANDBOX_HELD_MAX) this.counters.heldLost += 1;
    else this.#held.push({ identity, decoded });
  }

  /** Whether a leader's window is this one or one of the next two. */
  #leadsSoon(identity: string): boolean {
    const { calendar } = this.#deps;
    const window = Math.floor(this.#slot / WINDOW_SLOTS);
    for (let ahead = 0; ahead <= HOLD_WINDOWS; ahead += 1) {
      if (calendar.leaderAt((window + ahead) * WINDOW_SLOTS) === identity) return true;
    }
    return false;
  }

  /** Lands what this slot's leader holds, and drops what was held for a past window. */
  #settleHeld(): void {
    const leader = this.#deps.calendar.leaderAt(this.#slot);
    const waiting = this.#held;
    this.#held = [];
    for (const each of waiting) {
      if (this.#phase === "vote_only") this.counters.voteOnlyLost += 1;
      else if (this.#open && each.identity === leader) this.#land(leader, each.decoded);
      else if (this.#leadsSoon(each.identity)) this.#held.push(each);
      else this.counters.heldLost += 1;
    }
  }
}

function blockhashOf(slot: number, bankId: number): string {
  return encodeKey(createHash("sha256").update(`block ${slot} ${bankId}`).digest());
}

/** A block's vote by its signature, which no key has signed. */
function voteOf({ slot, bankId }: Block): string {
  return encodeSignature(createHash("sha512").update(`vote ${slot} ${bankId}`).digest());
}
