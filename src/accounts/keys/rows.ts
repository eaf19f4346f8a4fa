/**
 * The rows of the key table: lines of numbers, an index over them, and names that many keys share.
 * Made for millions of rows, and for look-ups that go on between any two changes.
 *
 * Rows lie without gaps: a removal moves the last one into the gap.
 *
 * Hot path: `lookup` allocates its answer, nothing else.
 */

import { KeyIndex, NO_LINE } from "./index.ts";
import type { KeyOwner, LentKey, Plan, StoredKey } from "./key.ts";
import type { Restriction } from "./restriction.ts";
import { KeyLines } from "./row-layout.ts";

/** What many keys share, held once for each name as long as a key has it; the newest holds. */
class Shared<T> {
  readonly #nameOf: (item: T) => string;
  readonly #items: (T | null)[] = [];
  /** How many keys have each. */
  readonly #counts: number[] = [];
  readonly #free: number[] = [];
  /** In many maps, because one that grows places all that it has anew, which takes long. */
  readonly #numbers = Array.from({ length: NAME_PARTS }, () => new Map<string, number>());
  /** Asked for last: keys of one account come side by side. */
  #lastName: string | null = null;
  #lastNumber = 0;

  constructor(nameOf: (item: T) => string) {
    this.#nameOf = nameOf;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The number by which one more key calls it. */
  take(item: T): number {
    const name = this.#nameOf(item);
    if (name !== this.#lastName) {
      this.#lastNumber = this.#numbersOf(name)?.get(name) ?? this.#added(name);
      this.#lastName = name;
    }
    const number = this.#lastNumber;
    this.#items[number] = item;
    this.#counts[number] = (this.#counts[number] ?? 0) + 1;
    return number;
  }

  /** A key has it no more; with the last one it is forgotten, and its number another's. */
  release(number: number): void {
    const left = (this.#counts[number] ?? 0) - 1;
    this.#counts[number] = left;
    const item = this.#items[number] ?? null;
    if (left > 0 || item === null) return;
    const name = this.#nameOf(item);
    this.#numbersOf(name)?.delete(name);
    this.#items[number] = null;
    this.#free.push(number);
    if (name === this.#lastName) this.#lastName = null;
  }

  /** For all keys that have it. */
  set(item: T): void {
    const number = this.find(this.#nameOf(item));
    if (number !== NONE) this.#items[number] = item;
  }

  find(name: string): number {
    return this.#numbersOf(name)?.get(name) ?? NONE;
  }

  at(number: number): T | null {
    return this.#items[number] ?? null;
  }

  #added(name: string): number {
    const number = this.#free.pop() ?? this.#counts.length;
    this.#counts[number] = 0;
    this.#numbersOf(name)?.set(name, number);
    return number;
  }

  /** By the last characters: names that count up differ there, and ids anywhere. */
  #numbersOf(name: string): Map<string, number> | undefined {
    const end = name.length - 1;
    const part = name.charCodeAt(end) + 16 * name.charCodeAt(end - 1);
    return this.#numbers[part & (NAME_PARTS - 1)];
  }
}

/** What few keys have, each its own, called by a number above 0. */
class Owned<T> {
  readonly #items: (T | null)[] = [null];
  readonly #free: number[] = [];

  add(item: T): number {
    const number = this.#free.pop() ?? this.#items.length;
    this.#items[number] = item;
    return number;
  }

  remove(number: number): void {
    if (number === 0) return;
    this.#items[number] = null;
    this.#free.push(number);
  }

  at(number: number): T | null {
    return this.#items[number] ?? null;
  }
}

type Narrowed = Pick<StoredKey, "account" | "plan" | "restriction">;

const NONE = -1;
/** Maps of names; a power of two. */
const NAME_PARTS = 256;

export class Rows {
  count = 0;
  readonly #lines = new KeyLines();
  readonly #index = new KeyIndex(this.#lines);
  readonly #restrictions = new Owned<Restriction>();
  readonly #accounts = new Shared<string>((account) => account);
  readonly #plans = new Shared<Plan>(({ name }) => name);

  has(sha256: Buffer): boolean {
    return this.#index.find(sha256, 0) !== NO_LINE;
  }

  lookup(sha256: Buffer): KeyOwner | null {
    const line = this.#index.find(sha256, 0);
    return line === NO_LINE ? null : this.#ownerOf(line);
  }

  put(key: StoredKey): void {
    const line = this.#lineFor(key.sha256, 0);
    this.#lines.writeIdText(line, key.keyId);
    this.#write(line, key);
  }

  putLent(key: LentKey): void {
    const line = this.#lineFor(key.bytes, key.sha256At);
    this.#lines.writeId(line, key.bytes, key.idAt);
    this.#write(line, key);
  }

  setPlan(plan: Plan): void {
    this.#plans.set(plan);
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
    if (found === 0) return [];
    return this.#lines.linesOf(wanted, this.count).map((line) => this.#lines.digestOf(line));
  }

  /** From the last to the first: what fills a gap comes from where was looked already. */
  *entries(): IterableIterator<StoredKey> {
    for (let line = this.count - 1; line >= 0; line -= 1) {
      if (line >= this.count) continue;
      const owner = this.#ownerOf(line);
      if (owner === null) continue;
      // Spread, a million of them would lie in V8's old generation until that is cleaned.
      const { keyId, account, plan, restriction } = owner;
      yield { sha256: this.#lines.digestOf(line), keyId, account, plan, restriction };
    }
  }

  remove(sha256: Buffer): boolean {
    const line = this.#index.find(sha256, 0);
    if (line === NO_LINE) return false;
    this.#forget(line);
    this.#index.remove(line);
    this.count -= 1;
    if (line !== this.count) {
      this.#index.move(this.count, line);
      this.#lines.copy(this.count, line);
    }
    return true;
  }

  /** The line of the key with this digest, a new one where there is none. */
  #lineFor(bytes: Buffer, at: number): number {
    const known = this.#index.find(bytes, at);
    if (known !== NO_LINE) {
      this.#forget(known);
      return known;
    }
    const line = this.count;
    this.#lines.writeDigest(line, bytes, at);
    this.#index.add(line);
    this.count += 1;
    return line;
  }

  /** What a line's numbers stand for. */
  #forget(line: number): void {
    this.#restrictions.remove(this.#lines.restrictionOf(line));
    this.#accounts.release(this.#lines.accountOf(line));
    this.#plans.release(this.#lines.planOf(line));
  }

  #write(line: number, { account, plan, restriction }: Narrowed): void {
    this.#lines.writeNumbers(
      line,
      this.#accounts.take(account),
      this.#plans.take(plan),
      restriction === null ? 0 : this.#restrictions.add(restriction),
    );
  }

  #ownerOf(line: number): KeyOwner | null {
    const account = this.#accounts.at(this.#lines.accountOf(line));
    const plan = this.#plans.at(this.#lines.planOf(line));
    if (account === null || plan === null) return null;
    const restriction = this.#restrictions.at(this.#lines.restrictionOf(line));
    return { keyId: this.#lines.idOf(line), account, plan, restriction };
  }
}
