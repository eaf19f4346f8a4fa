/**
 * The rows of the key table: lines of numbers, an index over them, and names that many keys share.
 * Made for millions of rows, and for look-ups that go on between any two changes.
 *
 * Rows lie without gaps: a removal moves the last one into the gap.
 *
 * Hot path: `lookup` allocates its answer, nothing else.
 */

import { KeyEntries } from "./entry-layout.ts";
import { KeyIndex, NO_ENTRY } from "./index.ts";
import type { LentKey, Plan, Principal, StoredKey } from "./key.ts";
import type { KeyPolicy } from "./policy.ts";

/** What many keys share, held once for each name as long as a key has it; the newest holds. */
class RefCounted<T> {
  readonly #keyOf: (item: T) => string;
  readonly #items: (T | null)[] = [];
  /** How many keys have each. */
  readonly #counts: number[] = [];
  readonly #free: number[] = [];
  /** In many maps, because one that grows places all that it has anew, which takes long. */
  readonly #numbers = Array.from({ length: NAME_PARTS }, () => new Map<string, number>());
  /** Asked for last: keys of one account come side by side. */
  #lastName: string | null = null;
  #lastNumber = 0;

  constructor(keyOf: (item: T) => string) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The number by which one more key calls it. */
  take(item: T): number {
    const name = this.#keyOf(item);
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
    const name = this.#keyOf(item);
    this.#numbersOf(name)?.delete(name);
    this.#items[number] = null;
    this.#free.push(number);
    if (name === this.#lastName) this.#lastName = null;
  }

  /** For all keys that have it. */
  set(item: T): void {
    const number = this.find(this.#keyOf(item));
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
class Slab<T> {
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

type KeyLinks = Pick<StoredKey, "account" | "plan" | "policy">;

const NONE = -1;
/** Maps of names; a power of two. */
const NAME_PARTS = 256;

export class KeyEntryStore {
  count = 0;
  readonly #keyEntries = new KeyEntries();
  readonly #index = new KeyIndex(this.#keyEntries);
  readonly #policies = new Slab<KeyPolicy>();
  readonly #accounts = new RefCounted<string>((account) => account);
  readonly #plans = new RefCounted<Plan>(({ name }) => name);

  has(sha256: Buffer): boolean {
    return this.#index.find(sha256, 0) !== NO_ENTRY;
  }

  lookup(sha256: Buffer): Principal | null {
    const entry = this.#index.find(sha256, 0);
    return entry === NO_ENTRY ? null : this.#principalOf(entry);
  }

  put(key: StoredKey): void {
    const entry = this.#entryFor(key.sha256, 0);
    this.#keyEntries.writeIdText(entry, key.keyId);
    this.#write(entry, key);
  }

  putLent(key: LentKey): void {
    const entry = this.#entryFor(key.bytes, key.sha256At);
    this.#keyEntries.writeId(entry, key.bytes, key.idAt);
    this.#write(entry, key);
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
    return this.#keyEntries
      .entriesOf(wanted, this.count)
      .map((entry) => this.#keyEntries.digestOf(entry));
  }

  /** From the last to the first: what fills a gap comes from where was looked already. */
  *entries(): IterableIterator<StoredKey> {
    for (let entry = this.count - 1; entry >= 0; entry -= 1) {
      if (entry >= this.count) continue;
      const principal = this.#principalOf(entry);
      if (principal === null) continue;
      // Spread, a million of them would lie in V8's old generation until that is cleaned.
      const { keyId, account, plan, policy } = principal;
      yield { sha256: this.#keyEntries.digestOf(entry), keyId, account, plan, policy };
    }
  }

  remove(sha256: Buffer): boolean {
    const entry = this.#index.find(sha256, 0);
    if (entry === NO_ENTRY) return false;
    this.#forget(entry);
    this.#index.remove(entry);
    this.count -= 1;
    if (entry !== this.count) {
      this.#index.move(this.count, entry);
      this.#keyEntries.copy(this.count, entry);
    }
    return true;
  }

  /** The line of the key with this digest, a new one where there is none. */
  #entryFor(bytes: Buffer, at: number): number {
    const known = this.#index.find(bytes, at);
    if (known !== NO_ENTRY) {
      this.#forget(known);
      return known;
    }
    const entry = this.count;
    this.#keyEntries.writeDigest(entry, bytes, at);
    this.#index.add(entry);
    this.count += 1;
    return entry;
  }

  /** What a line's numbers stand for. */
  #forget(entry: number): void {
    this.#policies.remove(this.#keyEntries.policyOf(entry));
    this.#accounts.release(this.#keyEntries.accountOf(entry));
    this.#plans.release(this.#keyEntries.planOf(entry));
  }

  #write(entry: number, { account, plan, policy }: KeyLinks): void {
    this.#keyEntries.writeNumbers(
      entry,
      this.#accounts.take(account),
      this.#plans.take(plan),
      policy === null ? 0 : this.#policies.add(policy),
    );
  }

  #principalOf(entry: number): Principal | null {
    const account = this.#accounts.at(this.#keyEntries.accountOf(entry));
    const plan = this.#plans.at(this.#keyEntries.planOf(entry));
    if (account === null || plan === null) return null;
    const policy = this.#policies.at(this.#keyEntries.policyOf(entry));
    return { keyId: this.#keyEntries.idOf(entry), account, plan, policy };
  }
}
