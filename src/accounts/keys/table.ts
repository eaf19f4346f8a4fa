/**
 * All valid keys by SHA-256. The keys themselves are not stored.
 *
 * Designed to hold a million keys: digests are contiguous in large blocks, an index of numbers
 * points into them, and each text is stored once. The table is replaced atomically, so a request
 * sees either the old or the new keys, or is changed key by key. Digests are compared in constant
 * time, so that response times do not reveal how much of one was guessed.
 *
 * Hot path: `lookup` probes arrays of numbers, compares once, and creates one small record.
 */

import { withFastProperties } from "../../runtime/fast-object.ts";
import { KEYS_MAX } from "../limits.ts";
import { KeyEntryStore } from "./entry-store.ts";
import type { KeyRow, LentKey, Plan, Principal, StoredKey } from "./key.ts";

export interface KeyTable {
  /** The owner of the key with this SHA-256, null for none. */
  lookup(sha256: Buffer): Principal | null;
  /**
   * Replaces all keys.
   *
   * @throws RangeError above `KEYS_MAX` keys; on this and any error of `rows` the old keys stay
   */
  replace(rows: Iterable<KeyRow>): void;
  /** Adds or changes a key. False: the table is full. */
  put(row: StoredKey): boolean;
  /** Removes a key; false if it was missing. */
  remove(sha256: Buffer): boolean;
  /** Changes a plan for all its keys. */
  setPlan(plan: Plan): void;
  /** The digests of these accounts' keys. Scans every key: for changes, not for requests. */
  digestsOf(accounts: ReadonlySet<string>): readonly Buffer[];
  /** All keys, last one first, while keys change: includes every key that stays throughout. */
  rows(): IterableIterator<StoredKey>;
  /**
   * Has a copy of the table elsewhere follow this one: all keys as soon as they are known, and each
   * change. Once.
   */
  follow(follower: KeyFollower): void;
  /** A second table, filled in steps, that then replaces this one. */
  startRebuild(): Rebuild;
  /** Incremented with each change of a key or plan, so that look-ups can be cached. */
  readonly changes: number;
  readonly counters: KeyTableCounters;
}

/** A copy of the table elsewhere. */
export interface KeyFollower {
  put(row: StoredKey): void;
  remove(sha256: Buffer): void;
  setPlan(plan: Plan): void;
  /** A second set of keys; one that was started before and not finished is void. */
  startRebuild(): Pick<Rebuild, "finish"> & {
    put(row: StoredKey): void;
    putLent(key: LentKey): void;
  };
}

export interface Rebuild {
  /** False: the table is full. */
  put(row: StoredKey): boolean;
  /** The same, for a key whose bytes are borrowed until this returns. */
  putLent(key: LentKey): boolean;
  has(sha256: Buffer): boolean;
  /** Replaces all keys by these. */
  finish(): void;
}

export interface KeyTableCounters {
  /** Valid keys; one that follows from an API key counts with that. */
  keys: number;
  /** Full replacements. */
  replacements: number;
  /** Keys added or changed individually. */
  puts: number;
  /** Keys removed individually. */
  removals: number;
}

/** Without `initial` the keys are not known before the first replacement. */
export function createKeyTable(initial: Iterable<KeyRow> | null = null): KeyTable {
  const counters: KeyTableCounters = { keys: 0, replacements: 0, puts: 0, removals: 0 };
  let rows = filled(initial ?? []);
  let isKnown = initial !== null;
  let changes = 0;
  let follower = NO_FOLLOWER;
  counters.keys = rows.count - rows.derivedCount;

  function changed(): void {
    changes += 1;
  }

  function takeOver(next: KeyEntryStore): void {
    rows = next;
    isKnown = true;
    changed();
    counters.keys = rows.count - rows.derivedCount;
    counters.replacements += 1;
  }

  return withFastProperties({
    counters,
    lookup: (sha256) => rows.lookup(sha256),
    replace(next) {
      takeOver(filled(next));
      copyTo(follower, rows);
    },
    follow(next) {
      follower = next;
      if (isKnown) copyTo(follower, rows);
    },
    get changes() {
      return changes;
    },
    setPlan(plan) {
      rows.setPlan(plan);
      follower.setPlan(plan);
      changed();
    },
    digestsOf: (accounts) => rows.digestsOf(accounts),
    rows: () => rows.entries(),
    startRebuild() {
      const next = new KeyEntryStore();
      const copy = follower.startRebuild();
      return {
        put(row) {
          if (next.count >= KEYS_MAX) return false;
          next.put(row);
          copy.put(row);
          return true;
        },
        putLent(key) {
          if (next.count >= KEYS_MAX) return false;
          next.putLent(key);
          copy.putLent(key);
          return true;
        },
        has: (sha256) => next.has(sha256),
        finish() {
          takeOver(next);
          copy.finish();
        },
      };
    },
    put(row) {
      if (rows.count >= KEYS_MAX && !rows.has(row.sha256)) return false;
      rows.put(row);
      follower.put(row);
      changed();
      counters.keys = rows.count - rows.derivedCount;
      counters.puts += 1;
      return true;
    },
    remove(sha256) {
      if (!rows.remove(sha256)) return false;
      follower.remove(sha256);
      changed();
      counters.keys = rows.count - rows.derivedCount;
      counters.removals += 1;
      return true;
    },
  });
}

function copyTo(follower: KeyFollower, rows: KeyEntryStore): void {
  const copy = follower.startRebuild();
  for (const row of rows.entries()) copy.put(row);
  copy.finish();
}

const NO_FOLLOWER: KeyFollower = {
  put() {},
  remove() {},
  setPlan() {},
  startRebuild: () => ({ put() {}, putLent() {}, finish() {} }),
};

function filled(source: Iterable<KeyRow>): KeyEntryStore {
  const rows = new KeyEntryStore();
  for (const row of source) {
    rows.put(row);
    if (rows.count > KEYS_MAX) throw new RangeError(`more than ${KEYS_MAX} keys`);
  }
  return rows;
}
