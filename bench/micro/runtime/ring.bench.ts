/** The ring on one thread: the cost of passing on a slot, with and without a transaction in it. */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { createRing, ringBytes } from "../../../src/runtime/ring.ts";

const SLOTS = 256;
const SLOT_BYTES = 4104;

export async function build(): Promise<Bench> {
  const bench = new Bench({ name: "core/ring", time: 500, warmupTime: 100 });
  const buffer = new SharedArrayBuffer(ringBytes(SLOTS, SLOT_BYTES));
  const ring = createRing(buffer, 0, SLOTS, SLOT_BYTES);
  const bytes = new Uint8Array(buffer);
  const transaction = new Uint8Array(1232).fill(7);

  const passEmpty = (): number => {
    ring.claim();
    ring.publish();
    const slot = ring.peek();
    ring.release();
    return slot;
  };
  const passWhole = (): number => {
    bytes.set(transaction, ring.claim());
    ring.publish();
    const slot = ring.peek();
    ring.release();
    return slot;
  };
  const first = passEmpty();
  assert.equal(passEmpty(), first + SLOT_BYTES);
  const slot = passWhole();
  assert.deepEqual(bytes.slice(slot, slot + 1232), transaction);
  assert.equal(ring.depth, 0);

  bench.add("claim, publish, peek, release", passEmpty);
  bench.add("the same with 1232 bytes copied in", passWhole);
  return bench;
}
