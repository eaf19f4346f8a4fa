import { describe, expect, it } from "vitest";
import { createClusterCounters } from "../../../src/cluster/counters.ts";
import { createScheduleWatcher } from "../../../src/cluster/leaders/schedule-watcher.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const SILENT_LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

/** A node with epochs of 1000 slots. */
function setUp() {
  const clock = createFakeClock();
  const counters = createClusterCounters();
  const node = { slot: 5100, known: 5, away: false, isSound: true, genesis: null as string | null };
  const warnings: string[] = [];
  const set: number[] = [];
  const asked: number[] = [];
  const span = (epoch: number) => ({ epoch, firstSlot: epoch * 1000, slots: 1000 });
  const watcher = createScheduleWatcher(
    {
      clock,
      counters,
      log: { ...SILENT_LOG, warn: (fields) => void warnings.push(JSON.stringify(fields)) },
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      sink: {
        setEpoch({ epoch }) {
          if (node.isSound) set.push(epoch);
          return node.isSound;
        },
        forgetEpochs: () => void set.splice(0),
      },
      rpc: {
        async epochs() {
          if (node.away) throw new Error("away");
          const epoch = Math.floor(node.slot / 1000);
          return {
            slot: node.slot,
            current: span(epoch),
            next: span(epoch + 1),
            genesis: node.genesis,
          };
        },
        async leaders(slot) {
          asked.push(slot);
          return slot / 1000 > node.known ? null : new Map([["A", [0]]]);
        },
      },
    },
    { checkMsMin: 1000, checkMsMax: 60_000, nextRetryMs: 5000 },
  );
  return { clock, counters, node, set, asked, warnings, watcher };
}

describe("the schedule feed", () => {
  it("takes this epoch, and the next until the node knows it", async () => {
    const { clock, watcher, node, set } = setUp();
    watcher.start();
    await settle();
    expect(set).toEqual([5]);
    clock.advance(5000);
    await settle();
    expect(set).toEqual([5]);
    node.known = 6;
    clock.advance(5000);
    await settle();
    expect(set).toEqual([5, 6]);
    watcher.stop();
  });

  it("fetches each schedule once, and the next one after each boundary", async () => {
    const { clock, watcher, node, set, asked } = setUp();
    node.known = 99;
    watcher.start();
    await settle();
    for (let look = 0; look < 4; look += 1) {
      clock.advance(60_000);
      await settle();
    }
    expect(asked).toEqual([5000, 6000]);
    node.slot = 6001;
    clock.advance(60_000);
    await settle();
    expect(asked).toEqual([5000, 6000, 7000]);
    expect(set).toEqual([5, 6, 7]);
    watcher.stop();
  });

  it("looks again before a boundary that is near can have passed for long", async () => {
    const { clock, watcher, node, set } = setUp();
    node.known = 99;
    node.slot = 5990;
    watcher.start();
    await settle();
    node.slot = 6001;
    clock.advance(1000);
    await settle();
    expect(set).toEqual([5, 6, 7]);
    watcher.stop();
  });

  it("tries again when the schedule of the epoch in progress is missing", async () => {
    const { clock, watcher, node, set, counters } = setUp();
    node.known = 4;
    watcher.start();
    await settle();
    expect(watcher.status()).toEqual({ ageMs: null, failures: 1 });
    expect(counters.scheduleFailures).toBe(1);
    node.known = 5;
    clock.advance(500);
    await settle();
    expect(set).toEqual([5]);
    expect(watcher.status().failures).toBe(0);
    watcher.stop();
  });

  it("asks again for a schedule that made no sense, and says what it was", async () => {
    const { clock, watcher, node, set, counters, warnings } = setUp();
    node.isSound = false;
    watcher.start();
    await settle();
    expect(counters.scheduleFailures).toBe(1);
    expect(warnings).toEqual([
      expect.stringContaining(
        "the leader schedule of epoch 5 makes no sense: 1 leaders, 1000 slots",
      ),
    ]);
    node.isSound = true;
    clock.advance(500);
    await settle();
    expect(set).toEqual([5]);
    watcher.stop();
  });

  it("asks sooner for a next schedule that is not known while the boundary is near", async () => {
    const { clock, watcher, node, set } = setUp();
    node.slot = 5980;
    watcher.start();
    await settle();
    node.slot = 6000;
    node.known = 6;
    // Twenty slots of the shortest duration, instead of the usual wait of five seconds.
    clock.advance(2000);
    await settle();
    expect(set).toEqual([5, 6]);
    watcher.stop();
  });

  it("reads all anew where the node is of another cluster, and says so", async () => {
    const { clock, watcher, node, set, asked, warnings } = setUp();
    node.known = 99;
    watcher.start();
    await settle();
    // The same epochs of another cluster have other leaders. A node without a hash is accepted.
    const look = async (genesis: string | null): Promise<number> => {
      node.genesis = genesis;
      clock.advance(60_000);
      await settle();
      return asked.length;
    };
    expect(await look("A")).toBe(2);
    expect(await look(null)).toBe(2);
    expect(await look("A")).toBe(2);
    expect(warnings).toEqual([]);
    expect(await look("B")).toBe(4);
    expect(set).toEqual([5, 6]);
    expect(warnings).toEqual([JSON.stringify({ genesis: "B", before: "A" })]);
    node.slot = 100;
    expect(await look("C")).toBe(6);
    expect(set).toEqual([0, 1]);
    watcher.stop();
  });

  it("survives a node that is away", async () => {
    const { clock, watcher, node, set } = setUp();
    node.away = true;
    watcher.start();
    await settle();
    clock.advance(500);
    await settle();
    expect(watcher.status().failures).toBe(2);
    node.away = false;
    clock.advance(1000);
    await settle();
    expect(set).toEqual([5]);
    watcher.stop();
    expect(clock.pending).toBe(0);
  });
});
