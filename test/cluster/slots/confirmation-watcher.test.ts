import { describe, expect, it } from "vitest";
import { ClusterCounters } from "../../../src/cluster/counters.ts";
import {
  CONFIRMATION_BACK_SLOTS,
  CONFIRMATION_CHECK_MS,
  CONFIRMATION_STALL_SLOTS,
} from "../../../src/cluster/limits.ts";
import type { SlotSource } from "../../../src/cluster/ports.ts";
import { createConfirmationWatcher } from "../../../src/cluster/slots/confirmation-watcher.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const SLOT_MS = 250;

/** A watcher of a node that confirmed slot 100, which the cluster is at. */
function setUp() {
  const clock = createFakeClock();
  const counters = new ClusterCounters();
  /** Without `processed` it has processed every slot. */
  const node = { confirmed: 100 as number | null, processed: null as number | null };
  const changes: boolean[] = [];
  let slot = 100;
  const watcher = createConfirmationWatcher({
    clock,
    counters,
    rpc: {
      async confirmedSlot() {
        if (node.confirmed === null) throw new Error("unavailable");
        return node.confirmed;
      },
      slot: async () => node.processed ?? slot,
    },
    onChange: (isStalled) => void changes.push(isStalled),
  });
  watcher.start();
  watcher.confirmed(100);
  /** So many slots pass, as these sources report. */
  async function slots(count: number, sources: readonly SlotSource[] = ["slotsUpdates"]) {
    for (let passed = 0; passed < count; passed += 1) {
      slot += 1;
      clock.advance(SLOT_MS);
      for (const source of sources) {
        watcher.slotEvent("start", slot, source);
        watcher.slotEvent("end", slot - 1, source);
      }
      for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
    }
  }
  return { clock, counters, node, changes, watcher, slots };
}

describe("confirmation", () => {
  it("stands still once eight slots passed and the node confirmed none", async () => {
    const { changes, slots, counters } = setUp();
    await slots(CONFIRMATION_STALL_SLOTS - 1, ["slotsUpdates", "slot", "grpc"]);
    expect([changes, counters.confirmationChecks]).toEqual([[], 0]);
    await slots(1, ["slotsUpdates", "slot", "grpc"]);
    expect([changes, counters.confirmationChecks]).toEqual([[true], 1]);
  });

  it("does not stand still while a watcher reports a higher slot, or the node does", async () => {
    const { changes, slots, watcher, node, counters } = setUp();
    for (let slot = 101; slot < 130; slot += 1) {
      await slots(3);
      watcher.confirmed(slot);
    }
    expect(counters.confirmationChecks).toBe(0);
    node.confirmed = 150;
    await slots(60);
    expect(counters.confirmationChecks).toBeGreaterThan(0);
    expect(changes.slice(0, 1)).toEqual([true]);
    const { changes: none, slots: pass, node: other, watcher: its } = setUp();
    for (let slot = 101; slot < 200; slot += 1) {
      other.confirmed = slot;
      await pass(1);
    }
    expect(none).toEqual([]);
    its.stop();
  });

  it("is asked for until it rises, each 400 ms", async () => {
    const { changes, slots, node, counters, clock } = setUp();
    await slots(CONFIRMATION_STALL_SLOTS);
    const before = counters.confirmationChecks;
    await slots(16);
    const most = Math.ceil((16 * SLOT_MS) / CONFIRMATION_CHECK_MS);
    expect(counters.confirmationChecks - before).toBeLessThanOrEqual(most);
    expect(counters.confirmationChecks - before).toBeGreaterThan(most / 2);
    expect(changes).toEqual([true]);
    node.confirmed = 101;
    await slots(3);
    expect(changes).toEqual([true, false]);
    clock.advance(60_000);
    expect(clock.pending).toBe(0);
  });

  it("ends its standstill with a watcher's report", async () => {
    const { changes, slots, watcher } = setUp();
    await slots(CONFIRMATION_STALL_SLOTS);
    watcher.confirmed(100);
    watcher.confirmed(90);
    expect(changes).toEqual([true]);
    watcher.confirmed(101);
    expect(changes).toEqual([true, false]);
  });

  it("says nothing while no slots pass, or a source repeats or jumps", async () => {
    const { changes, clock, watcher, counters } = setUp();
    for (const slot of [101, 101, 9_000, 9_000]) {
      clock.advance(5_000);
      watcher.slotEvent("start", slot, "grpc");
    }
    // Many slots within a second are no cluster's.
    const { watcher: flooded, counters: its } = setUp();
    for (let slot = 101; slot < 200; slot += 1) flooded.slotEvent("start", slot, "grpc");
    expect([counters.confirmationChecks, its.confirmationChecks, changes]).toEqual([0, 0, []]);
  });

  it("says nothing of a node whose replay pauses for 5 s, with its shreds alone", async () => {
    const { changes, slots, node, counters } = setUp();
    node.processed = 102;
    await slots(20);
    expect(counters.confirmationChecks).toBeGreaterThan(2);
    // It catches up, and its confirmed slot with it.
    for (let caughtUp = 106; caughtUp <= 130; caughtUp += 4) {
      node.processed = caughtUp;
      node.confirmed = caughtUp - 3;
      await slots(1);
    }
    node.processed = null;
    expect(changes).toEqual([]);
  });

  it("says nothing if a confirmed slot was reported 100 too high", async () => {
    const { changes, slots, watcher, node, counters } = setUp();
    watcher.confirmed(200);
    for (let slot = 101; slot < 220; slot += 1) {
      node.confirmed = slot - 2;
      watcher.confirmed(slot - 2);
      await slots(1);
    }
    expect(changes).toEqual([]);
    // The node's second answer shows that the slot was false.
    expect(counters.confirmationChecks).toBe(2);
  });

  it("ends although a confirmed slot was reported 100 too high before", async () => {
    const { changes, slots, watcher, node } = setUp();
    watcher.confirmed(200);
    await slots(CONFIRMATION_STALL_SLOTS);
    expect(changes).toEqual([true]);
    node.confirmed = 101;
    await slots(3);
    expect(changes).toEqual([true, false]);
  });

  it("says nothing if the node does not answer, or before a first confirmed slot", async () => {
    const { changes, slots, node, counters } = setUp();
    await slots(CONFIRMATION_STALL_SLOTS);
    node.confirmed = null;
    await slots(8);
    expect(changes).toEqual([true]);
    expect(counters.confirmationCheckFailures).toBeGreaterThan(2);
    node.confirmed = 100;
    await slots(2);
    expect(changes).toEqual([true]);
    node.confirmed = 110;
    await slots(2);
    expect(changes).toEqual([true, false]);
    const { changes: none, slots: pass, node: silent } = setUp();
    silent.confirmed = null;
    await pass(40);
    expect(none).toEqual([]);
    const { clock, watcher } = setUp();
    watcher.stop();
    for (let slot = 101; slot < 120; slot += 1) watcher.slotEvent("start", slot, "grpc");
    expect(clock.pending).toBe(0);
  });

  it("follows a cluster that confirms from an older slot, not a node that lags", async () => {
    const { changes, slots, node, watcher } = setUp();
    node.confirmed = 100 - CONFIRMATION_BACK_SLOTS;
    await slots(CONFIRMATION_STALL_SLOTS);
    expect(changes).toEqual([true]);
    watcher.confirmed(100 - CONFIRMATION_BACK_SLOTS - 1);
    expect(changes).toEqual([true, false]);
    watcher.confirmed(100 - CONFIRMATION_BACK_SLOTS);
    await slots(3);
    expect(changes).toEqual([true, false]);
  });
});
