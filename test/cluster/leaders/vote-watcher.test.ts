import { describe, expect, it } from "vitest";
import { ClusterCounters } from "../../../src/cluster/counters.ts";
import { createVoteWatcher } from "../../../src/cluster/leaders/vote-watcher.ts";
import type { ClusterSink } from "../../../src/cluster/ports.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

async function flushMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

function setUp(sink: Partial<ClusterSink>) {
  const clock = createFakeClock();
  const counters = new ClusterCounters();
  const warnings: string[] = [];
  const node = { delinquent: ["A"] as readonly string[], down: false };
  const stakes = new Map(Object.entries({ A: 7, B: 1, C: 1, D: 8 }));
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
      sink: { setDelinquent: () => undefined, setStakes: () => undefined, ...sink },
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      rpc: {
        async votes() {
          if (node.down) throw new Error("unavailable");
          return { delinquent: node.delinquent, stakes };
        },
      },
    },
    { intervalMs: 60_000 },
  );
  return { clock, counters, warnings, node, watcher };
}

describe("vote watcher", () => {
  it("publishes the delinquent leaders immediately and every 60 s", async () => {
    const published: (readonly string[])[] = [];
    const { watcher, clock, node } = setUp({ setDelinquent: (list) => void published.push(list) });
    watcher.start();
    await flushMicrotasks();
    node.delinquent = [];
    clock.advance(60_000);
    await flushMicrotasks();
    expect(published).toEqual([["A"], []]);
    watcher.stop();
    expect(clock.pending).toBe(0);
  });

  it("publishes nothing and warns once while the node is down", async () => {
    const published: (readonly string[])[] = [];
    const { watcher, clock, node, warnings, counters } = setUp({
      setDelinquent: (list) => void published.push(list),
    });
    node.down = true;
    watcher.start();
    await flushMicrotasks();
    clock.advance(500);
    await flushMicrotasks();
    expect(published).toEqual([]);
    expect(warnings).toEqual(["the delinquent leaders could not be read"]);
    expect(counters).toMatchObject({ voteFetches: 2, voteFailures: 2 });
    watcher.stop();
  });

  it("keeps the known list where a node names most of the stake delinquent", async () => {
    const published: (readonly string[])[] = [];
    const stakes: number[] = [];
    const { watcher, clock, node, counters } = setUp({
      setDelinquent: (list) => void published.push(list),
      setStakes: (map) => void stakes.push(map.size),
    });
    // Three of four, but not half of the stake: 8.5 of 17.
    node.delinquent = ["A", "B"];
    watcher.start();
    await flushMicrotasks();
    node.delinquent = ["A", "B", "C"];
    clock.advance(60_000);
    await flushMicrotasks();
    expect(counters.voteFailures).toBe(1);
    node.delinquent = ["B", "C"];
    clock.advance(500);
    await flushMicrotasks();
    expect(published).toEqual([
      ["A", "B"],
      ["B", "C"],
    ]);
    // Those of each response count, whatever its list says.
    expect(stakes).toEqual([4, 4, 4]);
    watcher.stop();
  });

  it("publishes the stakes of the same response", async () => {
    const published: (readonly (readonly [string, number])[])[] = [];
    const { watcher, counters } = setUp({
      setStakes: (stakes) => void published.push([...stakes]),
    });
    watcher.start();
    await flushMicrotasks();
    expect(published).toEqual([Object.entries({ A: 7, B: 1, C: 1, D: 8 })]);
    expect(counters.voteFetches).toBe(1);
    watcher.stop();
  });

  it("works with a sink without setDelinquent", async () => {
    const { watcher, counters } = setUp({});
    watcher.start();
    await flushMicrotasks();
    expect(counters.voteFailures).toBe(0);
    watcher.stop();
  });
});
