/**
 * All keys that are good now, by the SHA-256 of the key. The keys themselves are not here.
 *
 * Held so that a million keys fit: digests lie side by side in large blocks, an index of numbers
 * points into them, and texts are held once each. The table is replaced as a whole, so a request
 * sees either the old keys or the new ones, or changed key by key. The digest is compared in
 * constant time, so that answers do not tell how much of it was guessed.
 *
 * Hot path: `lookup` probes arrays of numbers, compares once, and makes one small record.
 */

import { timingSafeEqual } from "node:crypto";
import { KEYS_MAX } from "../core/limits.ts";
import type { Restriction } from "./restriction.ts";

/** What the accounts on a plan may do. */
export interface Plan {
  readonly name: string;
  /** Requests a second in the long run; above 0, may be below 1. */
  readonly ratePerSecond: number;
  /** Requests that are let through at once; at least 1. */
  readonly burst: number;
}

/** One key that is good. */
export interface KeyRow {
  /** 32 bytes. */
  readonly sha256: Buffer;
  /** The key's name in limits and in usage, 32 hexadecimal digits; never the key itself. */
  readonly keyId: string;
  readonly account: string;
  readonly plan: Plan;
  /** The owner's own words for it; null for none. */
  readonly label: string | null;
  /** What narrows this one key; null where its account's plan alone holds. */
  readonly restriction: Restriction | null;
}

/** Whose key it is, and what it may do. */
export interface KeyOwner {
  readonly keyId: string;
  readonly account: string;
  readonly plan: Plan;
  readonly restriction: Restriction | null;
}

export interface KeyTable {
  /** The owner of the key with this SHA-256, null for none. */
  lookup(sha256: Buffer): KeyOwner | null;
  /**
   * From now on these keys are good, and no others.
   *
   * @throws RangeError above `KEYS_MAX` keys; the old ones stay then, as with any error of `rows`
   */
  replace(rows: Iterable<KeyRow>): void;
  /** Adds a key, or changes what is known of it. False: there is no room for one more. */
  put(row: KeyRow): boolean;
  /** Takes a key out; false where it was not in. */
  remove(sha256: Buffer): boolean;
  readonly counters: KeyTableCounters;
}

export interface KeyTableCounters {
  /** Keys that are good now. */
  keys: number;
  /** How often the keys were replaced as a whole. */
  replacements: number;
  /** Keys added or changed one by one. */
  puts: number;
  /** Keys taken out one by one. */
  removals: number;
}

export function createKeyTable(initial: Iterable<KeyRow> = []): KeyTable {
  const counters: KeyTableCounters = { keys: 0, replacements: 0, puts: 0, removals: 0 };
  let rows = filled(initial);
  counters.keys = rows.count;
  return {
    counters,
    lookup: (sha256) => rows.lookup(sha256),
    replace(next) {
      rows = filled(next);
      counters.keys = rows.count;
      counters.replacements += 1;
    },
    put(row) {
      if (rows.count >= KEYS_MAX && !rows.has(row.sha256)) return false;
      if (rows.isStale) rows = rows.compacted();
      rows.put(row);
      counters.keys = rows.count;
      counters.puts += 1;
      return true;
    },
    remove(sha256) {
      if (!rows.remove(sha256)) return false;
      counters.keys = rows.count;
      counters.removals += 1;
      return true;
    },
  };
}

function filled(source: Iterable<KeyRow>): Rows {
  const rows = new Rows();
  for (const row of source) {
    rows.put(row);
    if (rows.count > KEYS_MAX) throw new RangeError(`more than ${KEYS_MAX} keys`);
  }
  return rows;
}

/** What many keys share, held once for each name and called by a number. */
class Shared<T> {
  readonly #items: T[] = [];
  readonly #numbers = new Map<string, number>();

  get size(): number {
    return this.#items.length;
  }

  numberOf(name: string, item: T): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const number = this.#items.push(item) - 1;
    this.#numbers.set(name, number);
    return number;
  }

  at(number: number): T | null {
    return this.#items[number] ?? null;
  }
}

const DIGEST_BYTES = 32;
const ID_BYTES = 16;
/** Rows of one block; a power of two. Blocks are added, never copied. */
const BLOCK_ROWS = 4096;
const INDEX_MIN = 1024;
const NONE = -1;

/** A block of rows, column by column. */
class Block {
  readonly digests = Buffer.alloc(BLOCK_ROWS * DIGEST_BYTES);
  readonly ids = Buffer.alloc(BLOCK_ROWS * ID_BYTES);
  readonly accounts = new Uint32Array(BLOCK_ROWS);
  readonly plans = new Uint32Array(BLOCK_ROWS);
}

/**
 * Rows without gaps, and over them an open-addressed index with linear probing. A removal moves the
 * last row into the gap, and entries of the index that follow back, so there are no marks of what
 * was. A digest is random already and serves as its own hash.
 */
class Rows {
  count = 0;
  readonly #blocks: Block[] = [];
  /** The number of the row, plus 1; 0: free. Its size is a power of two. */
  #index = new Uint32Array(INDEX_MIN);
  readonly #restrictions = new Map<string, Restriction>();
  readonly #accounts = new Shared<string>();
  readonly #plans = new Shared<Plan>();

  /** Whether most names belong to keys that are gone. */
  get isStale(): boolean {
    return this.#accounts.size + this.#plans.size > 2 * this.count + INDEX_MIN;
  }

  has(sha256: Buffer): boolean {
    return this.#index[this.#entryOf(sha256)] !== 0;
  }

  lookup(sha256: Buffer): KeyOwner | null {
    const number = this.#index[this.#entryOf(sha256)] ?? 0;
    return number === 0 ? null : this.#ownerOf(number - 1, sha256);
  }

  put(row: Omit<KeyRow, "label">): void {
    const entry = this.#entryOf(row.sha256);
    const number = (this.#index[entry] ?? 0) - 1;
    this.#write(number === NONE ? this.count : number, row);
    if (row.restriction === null) this.#restrictions.delete(nameOf(row.sha256));
    else this.#restrictions.set(nameOf(row.sha256), row.restriction);
    if (number !== NONE) return;
    this.count += 1;
    this.#index[entry] = this.count;
    if (this.count * 2 > this.#index.length) this.#growIndex();
  }

  remove(sha256: Buffer): boolean {
    const entry = this.#entryOf(sha256);
    const row = (this.#index[entry] ?? 0) - 1;
    if (row === NONE) return false;
    this.#freeEntry(entry);
    this.#restrictions.delete(nameOf(sha256));
    this.count -= 1;
    if (row !== this.count) {
      this.#index[this.#entryOf(this.#digestOf(this.count))] = row + 1;
      this.#copyRow(this.count, row);
    }
    return true;
  }

  /** The same keys, without the names of those that are gone. */
  compacted(): Rows {
    const rows = new Rows();
    for (let row = 0; row < this.count; row += 1) {
      const sha256 = this.#digestOf(row);
      const owner = this.#ownerOf(row, sha256);
      if (owner !== null) rows.put({ ...owner, sha256 });
    }
    return rows;
  }

  #ownerOf(row: number, sha256: Buffer): KeyOwner | null {
    const block = this.#blocks[Math.floor(row / BLOCK_ROWS)];
    if (block === undefined) return null;
    const place = row % BLOCK_ROWS;
    const account = this.#accounts.at(block.accounts[place] ?? 0);
    const plan = this.#plans.at(block.plans[place] ?? 0);
    if (account === null || plan === null) return null;
    const keyId = block.ids.toString("hex", place * ID_BYTES, (place + 1) * ID_BYTES);
    const hasRestrictions = this.#restrictions.size > 0;
    const restriction = hasRestrictions ? this.#restrictions.get(nameOf(sha256)) : null;
    return { keyId, account, plan, restriction: restriction ?? null };
  }

  /** Writes into a row that is there, or into the first one behind them. */
  #write(row: number, { sha256, keyId, account, plan }: Omit<KeyRow, "label">): void {
    const block = this.#blockOf(row);
    const place = row % BLOCK_ROWS;
    sha256.copy(block.digests, place * DIGEST_BYTES, 0, DIGEST_BYTES);
    block.ids.write(keyId, place * ID_BYTES, ID_BYTES, "hex");
    block.accounts[place] = this.#accounts.numberOf(account, account);
    block.plans[place] = this.#plans.numberOf(planName(plan), plan);
  }

  #copyRow(from: number, to: number): void {
    const source = this.#blockOf(from);
    const target = this.#blockOf(to);
    const [old, place] = [from % BLOCK_ROWS, to % BLOCK_ROWS];
    source.digests.copy(
      target.digests,
      place * DIGEST_BYTES,
      old * DIGEST_BYTES,
      (old + 1) * DIGEST_BYTES,
    );
    source.ids.copy(target.ids, place * ID_BYTES, old * ID_BYTES, (old + 1) * ID_BYTES);
    target.accounts[place] = source.accounts[old] ?? 0;
    target.plans[place] = source.plans[old] ?? 0;
  }

  #blockOf(row: number): Block {
    const number = Math.floor(row / BLOCK_ROWS);
    const known = this.#blocks[number];
    if (known !== undefined) return known;
    const block = new Block();
    this.#blocks[number] = block;
    return block;
  }

  #digestOf(row: number): Buffer {
    const start = (row % BLOCK_ROWS) * DIGEST_BYTES;
    return this.#blockOf(row).digests.subarray(start, start + DIGEST_BYTES);
  }

  /** The entry of the row with this digest, or the free one where it would go. */
  #entryOf(sha256: Buffer): number {
    const mask = this.#index.length - 1;
    const start = sha256.readUInt32LE(0);
    let entry = start & mask;
    for (let number = this.#index[entry]; number; number = this.#index[entry]) {
      // Most neighbours differ here already; only the whole digest's comparison must take as long.
      if (this.#startOf(number - 1) === start) {
        if (timingSafeEqual(this.#digestOf(number - 1), sha256)) return entry;
      }
      entry = (entry + 1) & mask;
    }
    return entry;
  }

  #startOf(row: number): number {
    return this.#blockOf(row).digests.readUInt32LE((row % BLOCK_ROWS) * DIGEST_BYTES);
  }

  /** Frees an entry; those behind it that stood there for want of a better place move back. */
  #freeEntry(freed: number): void {
    const mask = this.#index.length - 1;
    let hole = freed;
    for (let next = (hole + 1) & mask; this.#index[next]; next = (next + 1) & mask) {
      const home = this.#startOf((this.#index[next] ?? 0) - 1) & mask;
      // Only what may stand at the hole, seen from its home, can fill it.
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      this.#index[hole] = this.#index[next] ?? 0;
      hole = next;
    }
    this.#index[hole] = 0;
  }

  #growIndex(): void {
    this.#index = new Uint32Array(this.#index.length * 2);
    const mask = this.#index.length - 1;
    for (let row = 0; row < this.count; row += 1) {
      let entry = this.#startOf(row) & mask;
      while (this.#index[entry]) entry = (entry + 1) & mask;
      this.#index[entry] = row + 1;
    }
  }
}

function planName({ name, ratePerSecond, burst }: Plan): string {
  return `${name} ${ratePerSecond} ${burst}`;
}

/** A digest as the key of a map. */
function nameOf(sha256: Buffer): string {
  return sha256.toString("latin1");
}
