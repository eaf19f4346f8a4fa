/** The cost of checking and of reserving a transaction. */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { createDedupCache } from "../../../src/dedup/recent-transactions.ts";

export async function build(): Promise<Bench> {
  const transactions = Array.from({ length: 4_096 }, (_, n) => {
    const bytes = Buffer.alloc(300, 7);
    bytes.writeUInt32BE(Math.imul(n, 2_654_435) >>> 0, 1);
    return bytes;
  });
  const dedup = createDedupCache();
  const full = createDedupCache({ entriesMax: 1_024 });
  for (const bytes of transactions) dedup.insert(bytes, 1, 0);
  const [known = Buffer.alloc(0)] = transactions;
  const unknown = Buffer.alloc(300, 9);
  assert.equal(dedup.query(known, 1, 1), true);
  assert.equal(dedup.query(unknown, 1, 1), false);

  let n = 0;
  const bench = new Bench({ name: "ingress: seen" });
  bench.add("look up one that is absent", () => {
    dedup.query(unknown, 1, 1);
  });
  bench.add("look up one that is present", () => {
    dedup.query(known, 1, 1);
  });
  bench.add("insert one at the bound", () => {
    n += 1;
    full.insert(transactions[n % 4_096] ?? known, 1, n);
  });
  return bench;
}
