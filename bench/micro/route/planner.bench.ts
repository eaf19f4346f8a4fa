/**
 * A plan for a slot, with a schedule and a contact table of mainnet's size. It is made a few times
 * a second, on the thread that also handles requests, so it must not delay them.
 */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { createContacts } from "../../../src/route/contacts.ts";
import { makePlan } from "../../../src/route/planner.ts";
import { createSchedule } from "../../../src/route/schedule.ts";

const LEADERS = 1000;
const SLOTS = 432_000;
const FIRST_SLOT = SLOTS * 1000;

export async function build(): Promise<Bench> {
  const leaders = new Map<string, number[]>();
  for (let index = 0; index < SLOTS; index += 1) {
    const identity = `leader${(Math.floor(index / 4) * 7919) % LEADERS}`;
    const indexes = leaders.get(identity) ?? [];
    indexes.push(index);
    leaders.set(identity, indexes);
  }
  const schedule = createSchedule();
  const epoch = { epoch: 1000, firstSlot: FIRST_SLOT, slots: SLOTS, leaders };
  assert(schedule.setEpoch(epoch));
  const nodes = Array.from({ length: 5000 }, (_, index) => ({
    identity: `leader${index}`,
    address: `10.0.${index >> 8}.${index & 255}:8009`,
  }));
  const contacts = createContacts();
  contacts.replace(nodes);

  const times = { roundTripMs: () => 100, neededMs: () => 60, reliabilityOf: () => 1 };
  const moment = { slotLeftMs: 100, slotTimeMs: 250, warmWindows: 6, schedule, contacts, times };
  let slot = FIRST_SLOT;
  const plan = () => {
    slot = slot + 1 < FIRST_SLOT + SLOTS - 64 ? slot + 1 : FIRST_SLOT;
    return makePlan({ ...moment, slot, leaders: 2 }).plan;
  };
  const meeting = () => {
    slot = slot + 1 < FIRST_SLOT + SLOTS - 64 ? slot + 1 : FIRST_SLOT;
    return makePlan({ ...moment, slot, leaders: 1 }).plan;
  };
  const first = plan();
  assert.equal(first.send.length, 2);
  assert.equal(first.warm.length, 6);
  assert.equal(first.send[0]?.identity, "leader0");
  assert.equal(first.send[1]?.identity, "leader919");

  const bench = new Bench({ name: "route/planner" });
  bench.add("makePlan, 2 to send to and 6 warm", () => {
    plan();
  });
  bench.add("makePlan, 1 to send to, the next one where windows meet", () => {
    meeting();
  });
  bench.add("setEpoch, 432,000 slots", () => {
    schedule.setEpoch(epoch);
  });
  bench.add("contacts.replace, 5,000 nodes", () => {
    contacts.replace(nodes);
  });
  return bench;
}
