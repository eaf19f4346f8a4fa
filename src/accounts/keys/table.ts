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

import { withFastProperties } from "../../runtime/fast-object.ts";
import { KEYS_MAX } from "../limits.ts";
import { KeyEntryStore } from "./entry-store.ts";
import type { KeyRow, LentKey, Plan, Principal, StoredKey } from "./key.ts";

export interface KeyTable {
  /** The owner of the key with this SHA-256, null for none. */
  lookup(sha256: Buffer): Principal | null;
  /**
   * From now on these keys are good, and no others.
   *
   * @throws RangeError above `KEYS_MAX` keys; the old ones stay then, as with any error of `rows`
   */
  replace(rows: Iterable<KeyRow>): void;
  /** Adds a key, or changes what is known of it. False: there is no room for one more. */
  put(row: StoredKey): boolean;
  /** Takes a key out; false where it was not in. */
  remove(sha256: Buffer): boolean;
  /** Changes a plan for all keys that are on it. */
  setPlan(plan: Plan): void;
  /** The digests of these accounts' keys. Looks at every key: for changes, not for requests. */
  digestsOf(accounts: ReadonlySet<string>): readonly Buffer[];
  /**
   * All keys, last one first, while keys may come and go: one that stays all the while is among
   * them.
   */
  rows(): IterableIterator<StoredKey>;
  /** Another table to be filled in steps and taken over as a whole. */
  startRebuild(): Rebuild;
  /** Rises with each change of any key or plan, so that what was looked up can be held. */
  readonly changes: number;
  /**
   * Calls `act` after every change, once for all those that are made in one go: before anything
   * else that waits for the event loop. Never undone.
   */
  onChange(act: () => void): void;
  readonly counters: KeyTableCounters;
}

export interface Rebuild {
  /** False: there is no room for one more. */
  put(row: StoredKey): boolean;
  /** The same, for a key whose bytes are lent until it returns. */
  putLent(key: LentKey): boolean;
  has(sha256: Buffer): boolean;
  /** From now on these keys are good, and no others. */
  finish(): void;
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
  let changes = 0;
  const listeners = createListeners();
  counters.keys = rows.count;

  function changed(): void {
    changes += 1;
    listeners.tell();
  }

  function takeOver(next: KeyEntryStore): void {
    rows = next;
    changed();
    counters.keys = rows.count;
    counters.replacements += 1;
  }

  return withFastProperties({
    counters,
    lookup: (sha256) => rows.lookup(sha256),
    replace: (next) => takeOver(filled(next)),
    get changes() {
      return changes;
    },
    onChange: listeners.add,
    setPlan(plan) {
      rows.setPlan(plan);
      changed();
    },
    digestsOf: (accounts) => rows.digestsOf(accounts),
    rows: () => rows.entries(),
    startRebuild() {
      const next = new KeyEntryStore();
      return {
        put(row) {
          if (next.count >= KEYS_MAX) return false;
          next.put(row);
          return true;
        },
        putLent(key) {
          if (next.count >= KEYS_MAX) return false;
          next.putLent(key);
          return true;
        },
        has: (sha256) => next.has(sha256),
        finish: () => takeOver(next),
      };
    },
    put(row) {
      if (rows.count >= KEYS_MAX && !rows.has(row.sha256)) return false;
      rows.put(row);
      changed();
      counters.keys = rows.count;
      counters.puts += 1;
      return true;
    },
    remove(sha256) {
      if (!rows.remove(sha256)) return false;
      changed();
      counters.keys = rows.count;
      counters.removals += 1;
      return true;
    },
  });
}

/** Who wants to know of changes: told in a microtask, so once for all that are made in one go. */
function createListeners() {
  const acts: (() => void)[] = [];
  let isDue = false;
  const call = (): void => {
    isDue = false;
    for (const act of acts) act();
  };
  return {
    add: (act: () => void) => void acts.push(act),
    tell() {
      if (isDue || acts.length === 0) return;
      isDue = true;
      queueMicrotask(call);
    },
  };
}

function filled(source: Iterable<KeyRow>): KeyEntryStore {
  const rows = new KeyEntryStore();
  for (const row of source) {
    rows.put(row);
    if (rows.count > KEYS_MAX) throw new RangeError(`more than ${KEYS_MAX} keys`);
  }
  return rows;
}
