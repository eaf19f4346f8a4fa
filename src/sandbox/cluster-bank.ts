/**
 * The simulated cluster's blocks, blockhashes that age, and the transactions that land.
 *
 * A transaction lands when it reaches the leader of the slot in progress. A leader whose window is
 * one of the next two holds it; all other deliveries are dropped silently, as real leaders do.
 * Landed transactions are executed immediately, so their status is available within the slot. A
 * leader whose slots are all skipped loses what it holds.
 */

import { createHash } from "node:crypto";
import { encodeKey, encodeSignature } from "../core/encoding.ts";
import { type Calendar, WINDOW_SLOTS } from "./cluster-slots.ts";
import type { Decoded, Ledger } from "./ledger.ts";
import type { RpcError } from "./ledger-errors.ts";
import { SANDBOX_HELD_MAX, SANDBOX_STATUSES_MAX } from "./limits.ts";

export type Commitment = "processed" | "confirmed" | "finalized";

export interface Block {
  readonly slot: number;
  readonly parent: number;
  /** Blocks up to and including this one; skipped slots do not count. */
  readonly height: number;
  readonly blockhash: string;
}

/** A block's content: its leader's vote, then the landed transactions. */
export interface BlockContent {
  readonly block: Block;
  readonly signatures: readonly string[];
}

/** A transaction that is in a block. */
export interface Landed {
  readonly signature: string;
  readonly slot: number;
  readonly height: number;
  /** In the form of JSON-RPC; null for success. */
  readonly err: RpcError | null;
  /** The leader of the block; null for an airdrop. */
  readonly leader: string | null;
}

export interface BankCounters {
  received: number;
  landed: number;
  /** Landed with an error. */
  landedFailed: number;
  /** Duplicates of transactions that landed or are held. */
  duplicates: number;
  /** Not a transaction. */
  undecodable: number;
  /** The leader's window was not one of the next two. */
  outOfTurn: number;
  blockhashNotFound: number;
  /** Execution failed in a way that keeps the transaction out of the block. */
  rejected: number;
  /** Held for a window that passed without a block, or above the bound. */
  heldLost: number;
  blocks: number;
  skipped: number;
}

export interface Bank {
  /** Enters the next slot; begins a block unless the slot is skipped. */
  enter(slot: number): Block | null;
  receive(identity: string, bytes: Uint8Array): void;
  airdrop(address: string, amount: bigint): string;
  /** The newest block that has reached a commitment. */
  block(commitment: Commitment): Block;
  /** That block and earlier ones, newest first: as many as a real cluster lists hashes of. */
  recent(commitment: Commitment): readonly Block[];
  statusOf(signature: string): Landed | null;
  /** A confirmed block with its signatures; null if there is none, or no longer. */
  contentOf(slot: number): BlockContent | null;
  commitmentOf(landed: Landed): Commitment;
  isBlockhashValid(blockhash: string): boolean;
  /** The last height at which the blockhash of a block at this height is valid. */
  lastValidHeight(height: number): number;
  readonly slot: number;
  readonly counters: BankCounters;
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
const DEPTH = { processed: 0, confirmed: 1, finalized: 31 } as const;
/** Size of the recent blockhashes account: `solana-sysvar`, 2026-11. */
const LISTED_BLOCKHASHES_MAX = 150;
/** Windows after the current one whose leaders hold the transactions they receive. */
const HOLD_WINDOWS = 2;

interface Held {
  readonly identity: string;
  readonly decoded: Decoded;
}

export function createBank(deps: BankDeps): Bank {
  return new SimulatedBank(deps);
}

class SimulatedBank implements Bank {
  readonly counters: BankCounters = createCounters();
  readonly #deps: BankDeps;
  /** Oldest first, at most twice `blockhashAgeMax`. */
  readonly #blocks: Block[];
  readonly #heights = new Map<string, number>();
  readonly #landed = new Map<string, Landed>();
  /** The leaders' own votes, one per block: they have a status like every transaction. */
  readonly #votes = new Map<string, Landed>();
  #held: Held[] = [];
  #slot: number;
  #open = false;

  constructor(deps: BankDeps) {
    this.#deps = deps;
    const slot = deps.calendar.firstSlot - 1;
    this.#slot = slot;
    this.#blocks = [];
    this.#append({ slot, parent: slot - 1, height: slot, blockhash: blockhashOf(slot) });
  }

  get slot(): number {
    return this.#slot;
  }

  enter(slot: number): Block | null {
    const { calendar } = this.#deps;
    this.#slot = slot;
    this.#open = !calendar.isSkipped(slot);
    if (!this.#open) this.counters.skipped += 1;
    const block = this.#open ? this.#openBlock(slot) : null;
    this.#settleHeld();
    return block;
  }

  receive(identity: string, bytes: Uint8Array): void {
    this.counters.received += 1;
    const decoded = this.#deps.ledger.decode(bytes);
    if (decoded === null) {
      this.counters.undecodable += 1;
      return;
    }
    if (this.#open && this.#deps.calendar.leaderAt(this.#slot) === identity) {
      this.#land(identity, decoded);
    } else this.#hold(identity, decoded);
  }

  airdrop(address: string, amount: bigint): string {
    this.#deps.ledger.airdrop(address, amount);
    const digest = createHash("sha512").update(`${address} ${amount} ${this.#landed.size}`);
    const signature = encodeSignature(digest.digest());
    this.#record({ signature, ...this.#place(), err: null, leader: null });
    return signature;
  }

  block(commitment: Commitment): Block {
    const index = Math.max(0, this.#blocks.length - 1 - DEPTH[commitment]);
    const block = this.#blocks[index];
    if (block === undefined) throw new RangeError("a bank has at least its first block");
    return block;
  }

  recent(commitment: Commitment): readonly Block[] {
    const end = Math.max(1, this.#blocks.length - DEPTH[commitment]);
    const count = Math.min(LISTED_BLOCKHASHES_MAX, this.#deps.blockhashAgeMax);
    return this.#blocks.slice(Math.max(0, end - count), end).reverse();
  }

  statusOf(signature: string): Landed | null {
    return this.#landed.get(signature) ?? this.#votes.get(signature) ?? null;
  }

  contentOf(slot: number): BlockContent | null {
    const block = this.#blocks.find((each) => each.slot === slot);
    if (block === undefined || block.height > this.block("confirmed").height) return null;
    const landed = [...this.#landed.values()].filter((each) => each.slot === slot);
    return { block, signatures: [voteOf(slot), ...landed.map(({ signature }) => signature)] };
  }

  commitmentOf(landed: Landed): Commitment {
    const depth = this.block("processed").height - landed.height;
    if (depth >= DEPTH.finalized) return "finalized";
    return depth >= DEPTH.confirmed ? "confirmed" : "processed";
  }

  isBlockhashValid(blockhash: string): boolean {
    const height = this.#heights.get(blockhash);
    return height !== undefined && this.block("processed").height <= this.lastValidHeight(height);
  }

  lastValidHeight(height: number): number {
    return height + this.#deps.blockhashAgeMax;
  }

  #openBlock(slot: number): Block {
    const before = this.block("processed");
    const block: Block = {
      slot,
      parent: before.slot,
      height: before.height + 1,
      blockhash: blockhashOf(slot),
    };
    this.#append(block);
    this.counters.blocks += 1;
    return block;
  }

  #append(block: Block): void {
    this.#blocks.push(block);
    this.#heights.set(block.blockhash, block.height);
    const signature = voteOf(block.slot);
    const { slot, height } = block;
    this.#votes.set(signature, { signature, slot, height, err: null, leader: null });
    // Blockhashes are kept for twice their lifetime, as in Agave's queue.
    const most = 2 * this.#deps.blockhashAgeMax;
    if (this.#blocks.length <= most) return;
    for (const old of this.#blocks.splice(0, this.#blocks.length - most)) {
      this.#heights.delete(old.blockhash);
      this.#votes.delete(voteOf(old.slot));
    }
  }

  #place(): { readonly slot: number; readonly height: number } {
    const { slot, height } = this.block("processed");
    return { slot, height };
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
    const error = this.#deps.ledger.execute(decoded);
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
      if (this.#open && each.identity === leader) this.#land(leader, each.decoded);
      else if (this.#leadsSoon(each.identity)) this.#held.push(each);
      else this.counters.heldLost += 1;
    }
  }
}

function blockhashOf(slot: number): string {
  return encodeKey(createHash("sha256").update(`block ${slot}`).digest());
}

/** A block's vote by its signature, which no key has signed. */
function voteOf(slot: number): string {
  return encodeSignature(createHash("sha512").update(`vote ${slot}`).digest());
}

function createCounters(): BankCounters {
  return {
    received: 0,
    landed: 0,
    landedFailed: 0,
    duplicates: 0,
    undecodable: 0,
    outOfTurn: 0,
    blockhashNotFound: 0,
    rejected: 0,
    heldLost: 0,
    blocks: 0,
    skipped: 0,
  };
}
