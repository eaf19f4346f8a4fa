/**
 * The rows of the key table: numeric entries, an index over them, and names shared by many keys.
 * Built for millions of rows, and for look-ups between any two changes.
 *
 * Rows are contiguous: a removal moves the last row into the gap.
 *
 * Hot path: `lookup` allocates only its result.
 */

import { KeyEntries } from "./entry-layout.ts";
import { KeyIndex, NO_ENTRY } from "./index.ts";
import type { LentKey, Plan, Principal, StoredKey } from "./key.ts";
import type { KeyPolicy } from "./policy.ts";

/**
 * Values shared by many keys, stored once per name while a key uses it; the newest value applies.
 */
class RefCounted<T> {
  readonly #keyOf: (item: T) => string;
  readonly #items: (T | null)[] = [];
  /** Number of keys that use each. */
  readonly #counts: number[] = [];
  readonly #free: number[] = [];
  /** Split into many maps, because a growing map rehashes all its entries, which takes long. */
  readonly #numbers = Array.from({ length: NAME_PARTS }, () => new Map<string, number>());
  /** The last name looked up: keys of one account arrive consecutively. */
  #lastName: string | null = null;
  #lastNumber = 0;

  constructor(keyOf: (item: T) => string) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#items.length;
  }

  /** Returns the item's number and counts one more key. */
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

  /** Counts one key less; the last one frees the number for reuse. */
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

  /** Replaces the value for all keys that use it. */
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

  /** By the last characters: sequential names differ there, and ids anywhere. */
  #numbersOf(name: string): Map<string, number> | undefined {
    const end = name.length - 1;
    const part = name.charCodeAt(end) + 16 * name.charCodeAt(end - 1);
    return this.#numbers[part & (NAME_PARTS - 1)];
  }
}

/** Values that few keys have, one per key, numbered from 1. */
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

type KeyLinks = Pick<StoredKey, "account" | "plan" | "policy" | "isDerived">;

const NONE = -1;
/** Number of name maps; a power of two. */
const NAME_PARTS = 256;

export class KeyEntryStore {
  count = 0;
  /** How many of them follow from an API key, which counts too. */
  derivedCount = 0;
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

  /** From last to first: a row moved into a gap has been visited already. */
  *entries(): IterableIterator<StoredKey> {
    for (let entry = this.count - 1; entry >= 0; entry -= 1) {
      if (entry >= this.count) continue;
      const principal = this.#principalOf(entry);
      if (principal === null) continue;
      // Object spread would put a million of them into V8's old generation until its next
      // collection.
      const { keyId, account, plan, policy } = principal;
      const isDerived = this.#keyEntries.isDerived(entry);
      yield { sha256: this.#keyEntries.digestOf(entry), keyId, account, plan, policy, isDerived };
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

  /** The entry of the key with this digest; a new one if missing. */
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

  /** Releases the values of an entry. */
  #forget(entry: number): void {
    this.#policies.remove(this.#keyEntries.policyOf(entry));
    this.#accounts.release(this.#keyEntries.accountOf(entry));
    this.#plans.release(this.#keyEntries.planOf(entry));
    if (this.#keyEntries.isDerived(entry)) this.derivedCount -= 1;
  }

  #write(entry: number, { account, plan, policy, isDerived }: KeyLinks): void {
    if (isDerived) this.derivedCount += 1;
    this.#keyEntries.writeNumbers(
      entry,
      this.#accounts.take(account),
      this.#plans.take(plan),
      policy === null ? 0 : this.#policies.add(policy),
      isDerived,
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
