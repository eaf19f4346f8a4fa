/**
 * The rows of the key table: columns in blocks that are added and never copied, an index of numbers
 * over them, and names that many keys share. Made for millions of rows, and for look-ups that go on
 * between any two changes.
 *
 * Hot path: `lookup` allocates its answer and a view for the comparison, nothing else.
 */

import { timingSafeEqual } from "node:crypto";
import type { KeyOwner, Plan, StoredKey } from "./key.ts";
import type { Restriction } from "./restriction.ts";

/** What many keys share, held once for each name and called by a number; the newest holds. */
class Shared<T> {
  readonly #items: T[] = [];
  readonly #numbers = new Map<string, number>();

  get size(): number {
    return this.#items.length;
  }

  numberOf(name: string, item: T): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) {
      this.#items[known] = item;
      return known;
    }
    const number = this.#items.push(item) - 1;
    this.#numbers.set(name, number);
    return number;
  }

  find(name: string): number {
    return this.#numbers.get(name) ?? NONE;
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
export class Rows {
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

  put(row: StoredKey): true {
    const entry = this.#entryOf(row.sha256);
    const number = (this.#index[entry] ?? 0) - 1;
    this.#write(number === NONE ? this.count : number, row);
    if (row.restriction === null) this.#restrictions.delete(nameOf(row.sha256));
    else this.#restrictions.set(nameOf(row.sha256), row.restriction);
    if (number !== NONE) return true;
    this.count += 1;
    this.#index[entry] = this.count;
    if (this.count * 2 > this.#index.length) this.#growIndex();
    return true;
  }

  setPlan(plan: Plan): void {
    this.#plans.numberOf(plan.name, plan);
  }

  digestsOf(accounts: ReadonlySet<string>): readonly Buffer[] {
    const wanted = new Uint8Array(this.#accounts.size);
    let found = 0;
    for (const account of accounts) {
      const number = this.#accounts.find(account);
      if (number === NONE) continue;
      wanted[number] = 1;
      found += 1;
    }
    const digests: Buffer[] = [];
    if (found === 0) return digests;
    for (const [number, { accounts: owners }] of this.#blocks.entries()) {
      const first = number * BLOCK_ROWS;
      const count = Math.min(this.count - first, BLOCK_ROWS);
      for (let place = 0; place < count; place += 1) {
        if (wanted[owners[place] ?? 0] !== 1) continue;
        digests.push(Buffer.from(this.#digestOf(first + place)));
      }
    }
    return digests;
  }

  /** From the last to the first: what fills a gap comes from where was looked already. */
  *entries(): IterableIterator<StoredKey> {
    for (let row = this.count - 1; row >= 0; row -= 1) {
      if (row >= this.count) continue;
      const sha256 = Buffer.from(this.#digestOf(row));
      const owner = this.#ownerOf(row, sha256);
      if (owner !== null) yield { ...owner, sha256 };
    }
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
    for (const row of this.entries()) rows.put(row);
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
  #write(row: number, { sha256, keyId, account, plan }: StoredKey): void {
    const block = this.#blockOf(row);
    const place = row % BLOCK_ROWS;
    sha256.copy(block.digests, place * DIGEST_BYTES, 0, DIGEST_BYTES);
    block.ids.write(keyId, place * ID_BYTES, ID_BYTES, "hex");
    block.accounts[place] = this.#accounts.numberOf(account, account);
    block.plans[place] = this.#plans.numberOf(plan.name, plan);
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

/** A digest as the key of a map. */
function nameOf(sha256: Buffer): string {
  return sha256.toString("latin1");
}
