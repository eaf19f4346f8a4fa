import { describe, expect, it } from "vitest";
import { ClusterCounters } from "../../../src/cluster/counters.ts";
import { createScheduleWatcher } from "../../../src/cluster/leaders/schedule-watcher.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const SILENT_LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };

async function flushMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

/** A node with epochs of 1000 slots. */
function setUp() {
  const clock = createFakeClock();
  const counters = new ClusterCounters();
  const node = {
    slot: 5100,
    knownEpoch: 5,
    down: false,
    acceptSchedule: true,
    genesis: null as string | null,
  };
  const warnings: string[] = [];
  const published: number[] = [];
  const requestedSlots: number[] = [];
  const span = (epoch: number) => ({ epoch, firstSlot: epoch * 1000, slots: 1000 });
  const watcher = createScheduleWatcher(
    {
      clock,
      counters,
      log: { ...SILENT_LOG, warn: (fields) => void warnings.push(JSON.stringify(fields)) },
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      sink: {
        setEpoch({ epoch }) {
          if (node.acceptSchedule) published.push(epoch);
          return node.acceptSchedule;
        },
        forgetEpochs: () => void published.splice(0),
      },
      rpc: {
        async epochs() {
          if (node.down) throw new Error("unavailable");
          const epoch = Math.floor(node.slot / 1000);
          return {
            slot: node.slot,
            current: span(epoch),
            next: span(epoch + 1),
            genesis: node.genesis,
          };
        },
        async leaders(slot) {
          requestedSlots.push(slot);
          return slot / 1000 > node.knownEpoch ? null : new Map([["A", [0]]]);
        },
      },
    },
    { checkMsMin: 1000, checkMsMax: 60_000, nextRetryMs: 5000 },
  );
  return { clock, counters, node, published, requestedSlots, warnings, watcher };
}

describe("schedule watcher", () => {
  it("publishes the current epoch, and retries the next until the node has it", async () => {
    const { clock, watcher, node, published } = setUp();
    watcher.start();
    await flushMicrotasks();
    expect(published).toEqual([5]);
    clock.advance(5000);
    await flushMicrotasks();
    expect(published).toEqual([5]);
    node.knownEpoch = 6;
    clock.advance(5000);
    await flushMicrotasks();
    expect(published).toEqual([5, 6]);
    watcher.stop();
  });

  it("fetches each schedule once, and the next one after each boundary", async () => {
    const { clock, watcher, node, published, requestedSlots } = setUp();
    node.knownEpoch = 99;
    watcher.start();
    await flushMicrotasks();
    for (let check = 0; check < 4; check += 1) {
      clock.advance(60_000);
      await flushMicrotasks();
    }
    expect(requestedSlots).toEqual([5000, 6000]);
    node.slot = 6001;
    clock.advance(60_000);
    await flushMicrotasks();
    expect(requestedSlots).toEqual([5000, 6000, 7000]);
    expect(published).toEqual([5, 6, 7]);
    watcher.stop();
  });

  it("checks again soon if an epoch boundary is near", async () => {
    const { clock, watcher, node, published } = setUp();
    node.knownEpoch = 99;
    node.slot = 5990;
    watcher.start();
    await flushMicrotasks();
    node.slot = 6001;
    clock.advance(1000);
    await flushMicrotasks();
    expect(published).toEqual([5, 6, 7]);
    watcher.stop();
  });

  it("retries if the schedule of the current epoch is missing", async () => {
    const { clock, watcher, node, published, counters } = setUp();
    node.knownEpoch = 4;
    watcher.start();
    await flushMicrotasks();
    expect(counters.scheduleFailures).toBe(1);
    node.knownEpoch = 5;
    clock.advance(500);
    await flushMicrotasks();
    expect(published).toEqual([5]);
    expect(counters.scheduleFailures).toBe(1);
    watcher.stop();
  });

  it("retries a schedule that the sink rejected, and logs its size", async () => {
    const { clock, watcher, node, published, counters, warnings } = setUp();
    node.acceptSchedule = false;
    watcher.start();
    await flushMicrotasks();
    expect(counters.scheduleFailures).toBe(1);
    expect(warnings).toEqual([
      expect.stringContaining(
        "the leader schedule of epoch 5 makes no sense: 1 leaders, 1000 slots",
      ),
    ]);
    node.acceptSchedule = true;
    clock.advance(500);
    await flushMicrotasks();
    expect(published).toEqual([5]);
    watcher.stop();
  });

  it("retries the next schedule sooner if the epoch boundary is near", async () => {
    const { clock, watcher, node, published } = setUp();
    node.slot = 5980;
    watcher.start();
    await flushMicrotasks();
    node.slot = 6000;
    node.knownEpoch = 6;
    // 20 slots of the shortest duration, instead of the usual wait of 5 s.
    clock.advance(2000);
    await flushMicrotasks();
    expect(published).toEqual([5, 6]);
    watcher.stop();
  });

  it("fetches all schedules again and warns if the genesis hash changed", async () => {
    const { clock, watcher, node, published, requestedSlots, warnings } = setUp();
    node.knownEpoch = 99;
    watcher.start();
    await flushMicrotasks();
    // Another cluster has other leaders in the same epochs. A null hash is no change.
    const checkWith = async (genesis: string | null): Promise<number> => {
      node.genesis = genesis;
      clock.advance(60_000);
      await flushMicrotasks();
      return requestedSlots.length;
    };
    expect(await checkWith("A")).toBe(2);
    expect(await checkWith(null)).toBe(2);
    expect(await checkWith("A")).toBe(2);
    expect(warnings).toEqual([]);
    expect(await checkWith("B")).toBe(4);
    expect(published).toEqual([5, 6]);
    expect(warnings).toEqual([JSON.stringify({ genesis: "B", before: "A" })]);
    node.slot = 100;
    expect(await checkWith("C")).toBe(6);
    expect(published).toEqual([0, 1]);
    watcher.stop();
  });

  it("retries while the node is down", async () => {
    const { clock, watcher, node, published, counters } = setUp();
    node.down = true;
    watcher.start();
    await flushMicrotasks();
    clock.advance(500);
    await flushMicrotasks();
    expect(counters.scheduleFailures).toBe(2);
    node.down = false;
    clock.advance(1000);
    await flushMicrotasks();
    expect(published).toEqual([5]);
    watcher.stop();
    expect(clock.pending).toBe(0);
  });
});
