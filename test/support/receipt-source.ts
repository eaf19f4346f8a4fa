/** Receipts as ingress sees them, for tests that say what each question is answered with. */

import type { ReceiptSource } from "../../src/http/receipts/source.ts";

/** A source without receipts, but for what a test gives it. */
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
