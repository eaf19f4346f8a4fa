/** One slot event through the vote of the last 48, and the estimate of the current slot. */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { NS_PER_MS } from "../../../src/core/clock.ts";
import { createSlotClock } from "../../../src/route/slots.ts";

const SLOT_NS = 250 * NS_PER_MS;

export async function build(): Promise<Bench> {
  const slots = createSlotClock();
  let slot = 0;
  const observe = () => {
    slot += 1;
    slots.observe("start", slot, slot * SLOT_NS);
  };
  for (let count = 0; count < 100; count += 1) observe();
  assert.equal(slots.current(100 * SLOT_NS), 100);
  assert.equal(slots.slotTimeMs, 250);

  const bench = new Bench({ name: "route/slots" });
  bench.add("observe", observe);
  bench.add("current", () => {
    slots.current(slot * SLOT_NS);
  });
  return bench;
}
