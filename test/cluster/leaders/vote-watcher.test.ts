import { describe, expect, it } from "vitest";
import { createClusterCounters } from "../../../src/cluster/counters.ts";
import { createVoteWatcher } from "../../../src/cluster/leaders/vote-watcher.ts";
import type { ClusterSink } from "../../../src/cluster/ports.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

function setUp(sink: Pick<ClusterSink, "setDelinquent">) {
  const clock = createFakeClock();
  const counters = createClusterCounters();
  const warnings: string[] = [];
  const node = { delinquent: ["A"] as readonly string[], away: false };
  const log = {
    info: () => undefined,
    warn: (_fields: object, text: string) => void warnings.push(text),
    error: () => undefined,
  };
  const watcher = createVoteWatcher(
    {
      clock,
      counters,
      log,
      sink,
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      rpc: {
        async delinquent() {
          if (node.away) throw new Error("away");
          return node.delinquent;
        },
      },
    },
    { intervalMs: 60_000 },
  );
  return { clock, counters, warnings, node, watcher };
}

describe("the vote feed", () => {
  it("hands on the delinquent leaders at once and every minute", async () => {
    const set: (readonly string[])[] = [];
    const { watcher, clock, node } = setUp({ setDelinquent: (list) => void set.push(list) });
    watcher.start();
    await settle();
    node.delinquent = [];
    clock.advance(60_000);
    await settle();
    expect(set).toEqual([["A"], []]);
    watcher.stop();
    expect(clock.pending).toBe(0);
  });

  it("changes nothing while the node is away, and says so once", async () => {
    const set: (readonly string[])[] = [];
    const { watcher, clock, node, warnings, counters } = setUp({
      setDelinquent: (list) => void set.push(list),
    });
    node.away = true;
    watcher.start();
    await settle();
    clock.advance(500);
    await settle();
    expect(set).toEqual([]);
    expect(warnings).toEqual(["the delinquent leaders could not be read"]);
    expect(counters).toMatchObject({ voteFetches: 2, voteFailures: 2 });
    watcher.stop();
  });

  it("does no harm where nobody wants to know", async () => {
    const { watcher, counters } = setUp({});
    watcher.start();
    await settle();
    expect(counters.voteFailures).toBe(0);
    watcher.stop();
  });
});
