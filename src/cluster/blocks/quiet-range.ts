/**
 * Proves that the blocks of a range of slots hold no transaction.
 *
 * The cluster counts the transactions in its blocks since genesis. If two confirmed blocks have the
 * same count, no block between them holds a transaction. Each response extends the range of slots
 * with one count, or starts a new range. The first block of a range may hold transactions, because
 * its count includes them. While blocks hold votes, the count rises with every block. With
 * Alpenglow they hold none, so the count rises only when a block holds a client's transaction.
 *
 * Decision: docs/decisions/0007-nodes-prove-statuses.md
 */

import { QUIET_BACK_SLOTS_MAX } from "../limits.ts";
import type { SlotRange } from "../ports.ts";

/**
 * What is known of a range of slots: `empty`, no transaction is in it; `pending`, none so far, and
 * the range is not complete; `unknown` otherwise.
 */
export type BlockContent = "empty" | "pending" | "unknown";

export interface QuietRange {
  /**
   * Reports a confirmed block and the transactions since genesis up to it; null for a node that
   * does not return the count.
   */
  observe(slot: number, transactionCount: number | null): void;
  /** The newest slot at or shortly before which a block holds a transaction; null if unknown. */
  readonly busySlot: number | null;
}

/** What is known of the blocks from one slot to another, both included. */
export function contentOf(range: SlotRange | null, fromSlot: number, toSlot: number): BlockContent {
  if (range === null || range.first >= fromSlot) return "unknown";
  return range.last >= toSlot ? "empty" : "pending";
}

/** `onChange` is called with each new range. */
export function createQuietRange(onChange: (range: SlotRange) => void): QuietRange {
  let count: number | null = null;
  /** The first and the last slot with this count; the block of the first may hold transactions. */
  let first = 0;
  let last = 0;
  let busySlot: number | null = null;

  function restart(slot: number, transactionCount: number): void {
    count = transactionCount;
    first = slot;
    last = slot;
  }

  return {
    observe(slot, transactionCount) {
      if (transactionCount === null) return;
      const before = { first, last };
      if (count === null || slot < first - QUIET_BACK_SLOTS_MAX) restart(slot, transactionCount);
      else if (slot < first) {
        // From a node that lags behind.
      } else if (transactionCount === count) last = Math.max(last, slot);
      else {
        if (transactionCount > count) busySlot = Math.max(slot, last);
        restart(Math.max(slot, last), slot < last ? count : transactionCount);
      }
      if (first !== before.first || last !== before.last) onChange({ first, last });
    },
    get busySlot() {
      return busySlot;
    },
  };
}
