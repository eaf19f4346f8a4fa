import { expect, it } from "vitest";
import { createConsensusWatcher } from "../../src/cluster/consensus-watcher.ts";
import { ClusterCounters } from "../../src/cluster/counters.ts";
import {
  CONSENSUS_AGAIN_MS,
  CONSENSUS_CLOSE_SLOTS,
  CONSENSUS_GAP_MS,
  CONSENSUS_POLL_MS,
} from "../../src/cluster/limits.ts";
import type { Consensus } from "../../src/cluster/ports.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setUp(consensus: Consensus | null) {
  const clock = createFakeClock();
  const counters = new ClusterCounters();
  const node = { consensus, finalizedLag: 32 };
  const changes: Consensus[] = [];
  const logged: string[] = [];
  const watcher = createConsensusWatcher({
    clock,
    counters,
    backOff: { firstMs: 500, maxMs: 8_000, random: () => 1 },
    log: {
      info: (fields, message) => void logged.push(`${message} ${JSON.stringify(fields)}`),
      warn: (_, message) => void logged.push(message),
      error: () => undefined,
    },
    rpc: {
      async consensus() {
        if (node.consensus === null) throw new Error("unavailable");
        return node.consensus;
      },
      finalizedLag: async () => node.finalizedLag,
    },
    onChange: (now) => void changes.push(now),
  });
  const advance = async (ms: number): Promise<void> => {
    clock.advance(ms);
    for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
  };
  watcher.start();
  return { counters, node, changes, logged, watcher, advance };
}

it("reads the consensus each minute until it is Alpenglow, and logs its changes", async () => {
  const { counters, node, changes, logged, watcher, advance } = setUp("tower_bft");
  await advance(0);
  await advance(CONSENSUS_POLL_MS);
  expect([watcher.consensus, counters.consensusPolls]).toEqual(["tower_bft", 2]);
  node.consensus = "alpenglow";
  await advance(CONSENSUS_POLL_MS);
  expect(changes).toEqual(["tower_bft", "alpenglow"]);
  for (let poll = 0; poll < 3; poll += 1) await advance(CONSENSUS_POLL_MS);
  expect(counters.consensusPolls).toBe(3);
  expect(logged).toEqual([
    `the cluster's consensus {"consensus":"tower_bft","isInferred":false}`,
    `the cluster's consensus {"consensus":"alpenglow","isInferred":false}`,
  ]);
});

it("leaves it unknown with a node that does not report it, and keeps what is known", async () => {
  const { node, changes, logged, watcher, advance } = setUp("unknown");
  await advance(0);
  await advance(CONSENSUS_POLL_MS);
  expect([watcher.consensus, changes, logged.length]).toEqual(["unknown", [], 1]);
  node.consensus = "tower_bft";
  await advance(CONSENSUS_POLL_MS);
  node.consensus = "unknown";
  await advance(CONSENSUS_POLL_MS);
  expect([watcher.consensus, changes]).toEqual(["tower_bft", ["tower_bft"]]);
});

it("infers Alpenglow from two polls with a finalized slot close to the confirmed one", async () => {
  const { node, changes, watcher, advance } = setUp("unknown");
  node.finalizedLag = CONSENSUS_CLOSE_SLOTS;
  await advance(0);
  expect(watcher.consensus).toBe("unknown");
  await advance(CONSENSUS_AGAIN_MS);
  expect([watcher.consensus, changes]).toEqual(["alpenglow", ["alpenglow"]]);
  await advance(CONSENSUS_POLL_MS);
  expect(changes).toEqual(["alpenglow"]);
  // The node had started, and has finalized 31 slots since.
  node.finalizedLag = CONSENSUS_CLOSE_SLOTS + 1;
  await advance(CONSENSUS_POLL_MS);
  expect(changes).toEqual(["alpenglow", "unknown"]);
  node.finalizedLag = 0;
  await advance(CONSENSUS_POLL_MS);
  node.finalizedLag = 31;
  await advance(CONSENSUS_AGAIN_MS);
  node.finalizedLag = 0;
  await advance(CONSENSUS_POLL_MS);
  expect(changes).toEqual(["alpenglow", "unknown"]);
});

it("infers nothing once a node has reported it, and replaces what it inferred", async () => {
  const { node, changes, counters, watcher, advance } = setUp("unknown");
  node.finalizedLag = 0;
  await advance(0);
  await advance(CONSENSUS_AGAIN_MS);
  node.consensus = "tower_bft";
  await advance(CONSENSUS_POLL_MS);
  expect(changes).toEqual(["alpenglow", "tower_bft"]);
  node.consensus = "unknown";
  for (let poll = 0; poll < 3; poll += 1) await advance(CONSENSUS_POLL_MS);
  expect([watcher.consensus, counters.consensusFailures]).toEqual(["tower_bft", 0]);
});

it("forgets what it inferred with the cluster", async () => {
  const { node, changes, watcher, advance } = setUp("unknown");
  node.finalizedLag = 0;
  await advance(0);
  await advance(CONSENSUS_AGAIN_MS);
  watcher.forget();
  await advance(CONSENSUS_GAP_MS);
  expect(changes).toEqual(["alpenglow", "unknown"]);
  await advance(CONSENSUS_AGAIN_MS);
  expect(changes).toEqual(["alpenglow", "unknown", "alpenglow"]);
});

it("counts failures, and asks again", async () => {
  const { counters, node, logged, watcher, advance } = setUp(null);
  await advance(0);
  node.consensus = "alpenglow";
  await advance(500);
  expect([counters.consensusFailures, watcher.consensus]).toEqual([1, "alpenglow"]);
  expect(logged[0]).toBe("the cluster's consensus could not be read");
});

it("can be read early, each 5 s at most", async () => {
  const { counters, watcher, advance } = setUp("tower_bft");
  await advance(0);
  for (let call = 0; call < 3; call += 1) watcher.pollNow();
  await advance(CONSENSUS_GAP_MS - 1);
  expect(counters.consensusPolls).toBe(1);
  await advance(1);
  expect(counters.consensusPolls).toBe(2);
  watcher.stop();
});

it("is forgotten when the address leads to another cluster", async () => {
  const { node, changes, watcher, advance } = setUp("alpenglow");
  await advance(0);
  node.consensus = "tower_bft";
  watcher.forget();
  expect(watcher.consensus).toBe("unknown");
  await advance(CONSENSUS_GAP_MS);
  expect(changes).toEqual(["alpenglow", "unknown", "tower_bft"]);
});
