/**
 * Receipts as HTTP reads them, for tests that configure each response.
 */

import type { ReceiptSource } from "../../src/core/receipt-source.ts";

/** A source without receipts, except those of a test. */
export function receiptSource(parts: Partial<ReceiptSource> = {}): ReceiptSource {
  return {
    find: () => null,
    ticket: () => null,
    reached: () => false,
    list: () => ({ transactions: [], next: null }),
    changes: { first: 1, next: 1 },
    readChanges: () => 1,
    eachChange: () => 1,
    ...parts,
  };
}
