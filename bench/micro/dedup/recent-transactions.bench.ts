/** What it costs to ask for, and to remember, a transaction. */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { createSeen } from "../../../src/dedup/recent-transactions.ts";

export async function build(): Promise<Bench> {
  const transactions = Array.from({ length: 4_096 }, (_, n) => {
    const bytes = Buffer.alloc(300, 7);
    bytes.writeUInt32BE(Math.imul(n, 2_654_435) >>> 0, 1);
    return bytes;
  });
  const seen = createSeen();
  const full = createSeen({ entriesMax: 1_024 });
  for (const bytes of transactions) seen.insert(bytes, 1, 0);
  const [known = Buffer.alloc(0)] = transactions;
  const unknown = Buffer.alloc(300, 9);
  assert.equal(seen.query(known, 1, 1), true);
  assert.equal(seen.query(unknown, 1, 1), false);

  let n = 0;
  const bench = new Bench({ name: "ingress: seen" });
  bench.add("ask for one that is not there", () => {
    seen.query(unknown, 1, 1);
  });
  bench.add("ask for one that is there", () => {
    seen.query(known, 1, 1);
  });
  bench.add("remember one at the bound", () => {
    n += 1;
    full.insert(transactions[n % 4_096] ?? known, 1, n);
  });
  return bench;
}
