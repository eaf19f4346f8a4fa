/**
 * All keys that are good now, by the SHA-256 of the key. The keys themselves are not here.
 *
 * The table is replaced as a whole, so a request sees either the old keys or the new ones. The
 * digest is compared in constant time, so that answers do not tell how much of it was guessed.
 *
 * Hot path: one number as the key of a map, one comparison.
 */

import { timingSafeEqual } from "node:crypto";

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
  readonly account: string;
  readonly plan: Plan;
  /** The owner's own words for it; null for none. */
  readonly label: string | null;
}

export interface KeyTable {
  /** The key with this SHA-256, null for none. */
  lookup(sha256: Buffer): KeyRow | null;
  /** From now on these keys are good, and no others. */
  replace(rows: Iterable<KeyRow>): void;
  readonly counters: KeyTableCounters;
}

export interface KeyTableCounters {
  /** Keys that are good now. */
  keys: number;
  /** How often the keys were replaced. */
  replacements: number;
}

export function createKeyTable(rows: Iterable<KeyRow> = []): KeyTable {
  const counters: KeyTableCounters = { keys: 0, replacements: 0 };
  let table = build(rows, counters);
  return {
    counters,
    lookup(sha256) {
      const found = table.get(slotOf(sha256));
      if (found === undefined) return null;
      for (const row of found) {
        if (timingSafeEqual(row.sha256, sha256)) return row;
      }
      return null;
    },
    replace(next) {
      table = build(next, counters);
      counters.replacements += 1;
    },
  };
}

/** Rows by the first 48 bits of the digest; more than one row there is a rare accident. */
function build(rows: Iterable<KeyRow>, counters: KeyTableCounters): Map<number, KeyRow[]> {
  const table = new Map<number, KeyRow[]>();
  counters.keys = 0;
  for (const row of rows) {
    const slot = slotOf(row.sha256);
    const there = table.get(slot);
    if (there === undefined) table.set(slot, [row]);
    else there.push(row);
    counters.keys += 1;
  }
  return table;
}

function slotOf(sha256: Buffer): number {
  return sha256.readUIntBE(0, SLOT_BYTES);
}

const SLOT_BYTES = 6;
