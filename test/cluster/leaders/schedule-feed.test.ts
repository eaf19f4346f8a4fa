import { describe, expect, it } from "vitest";
import { createChainCounters } from "../../../src/cluster/counters.ts";
import { createScheduleFeed } from "../../../src/cluster/leaders/schedule-feed.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const SILENT_LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

/** A node with epochs of 1000 slots. */
function setUp() {
  const clock = createFakeClock();
  const counters = createChainCounters();
  const node = { slot: 5100, known: 5, away: false, isSound: true, genesis: null as string | null };
  const warnings: string[] = [];
  const set: number[] = [];
  const asked: number[] = [];
  const span = (epoch: number) => ({ epoch, firstSlot: epoch * 1000, slots: 1000 });
  const feed = createScheduleFeed(
    {
      clock,
      counters,
      log: { ...SILENT_LOG, warn: (fields) => void warnings.push(JSON.stringify(fields)) },
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      target: {
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
  return { clock, counters, node, set, asked, warnings, feed };
}

describe("the schedule feed", () => {
  it("takes this epoch, and the next until the node knows it", async () => {
    const { clock, feed, node, set } = setUp();
    feed.start();
    await settle();
    expect(set).toEqual([5]);
    clock.advance(5000);
    await settle();
    expect(set).toEqual([5]);
    node.known = 6;
    clock.advance(5000);
    await settle();
    expect(set).toEqual([5, 6]);
    feed.stop();
  });

  it("fetches each schedule once, and the next one after each boundary", async () => {
    const { clock, feed, node, set, asked } = setUp();
    node.known = 99;
    feed.start();
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
    feed.stop();
  });

  it("looks again before a boundary that is near can have passed for long", async () => {
    const { clock, feed, node, set } = setUp();
    node.known = 99;
    node.slot = 5990;
    feed.start();
    await settle();
    node.slot = 6001;
    clock.advance(1000);
    await settle();
    expect(set).toEqual([5, 6, 7]);
    feed.stop();
  });

  it("tries again when the schedule of the epoch in progress is missing", async () => {
    const { clock, feed, node, set, counters } = setUp();
    node.known = 4;
    feed.start();
    await settle();
    expect(feed.status()).toEqual({ ageMs: null, failures: 1 });
    expect(counters.scheduleFailures).toBe(1);
    node.known = 5;
    clock.advance(500);
    await settle();
    expect(set).toEqual([5]);
    expect(feed.status().failures).toBe(0);
    feed.stop();
  });

  it("asks again for a schedule that made no sense, and says what it was", async () => {
    const { clock, feed, node, set, counters, warnings } = setUp();
    node.isSound = false;
    feed.start();
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
    feed.stop();
  });

  it("asks sooner for a next schedule that is not known while the boundary is near", async () => {
    const { clock, feed, node, set } = setUp();
    node.slot = 5980;
    feed.start();
    await settle();
    node.slot = 6000;
    node.known = 6;
    // Twenty slots of the shortest time, where five seconds are waited otherwise.
    clock.advance(2000);
    await settle();
    expect(set).toEqual([5, 6]);
    feed.stop();
  });

  it("reads all anew where the node is of another cluster, and says so", async () => {
    const { clock, feed, node, set, asked, warnings } = setUp();
    node.known = 99;
    feed.start();
    await settle();
    // The same epochs of another cluster have other leaders. Who does not tell is believed.
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
    feed.stop();
  });

  it("survives a node that is away", async () => {
    const { clock, feed, node, set } = setUp();
    node.away = true;
    feed.start();
    await settle();
    clock.advance(500);
    await settle();
    expect(feed.status().failures).toBe(2);
    node.away = false;
    clock.advance(1000);
    await settle();
    expect(set).toEqual([5]);
    feed.stop();
    expect(clock.pending).toBe(0);
  });
});
