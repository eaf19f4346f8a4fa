import { describe, expect, it } from "vitest";
import { createBlockWatcher } from "../../../src/cluster/blocks/block-watcher.ts";
import { ClusterCounters } from "../../../src/cluster/counters.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { observedBlocks, observedQuietRange } from "./fixture.ts";

async function flushMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

function setUp() {
  const clock = createFakeClock();
  const counters = new ClusterCounters();
  const blocks = observedBlocks(() => clock.nowNs(), counters);
  const quietRange = observedQuietRange();
  const warnings: string[] = [];
  const node = {
    height: 100,
    down: false,
    live: false,
    busy: false,
    transactions: 7,
    needsCounts: false,
    requests: [] as string[],
  };
  const respond = <T>(name: string, value: T): Promise<T> => {
    node.requests.push(name);
    return node.down ? Promise.reject(new Error("unavailable")) : Promise.resolve(value);
  };
  const statusAt = (height: number) => ({
    slot: height + 1_000,
    height,
    transactionCount: node.transactions,
  });
  const hashAt = (height: number) => new Uint8Array(32).fill(height);
  const watcher = createBlockWatcher(
    {
      clock,
      counters,
      blocks,
      log: {
        info: () => undefined,
        warn: (_fields, text) => warnings.push(text),
        error: () => undefined,
      },
      quietRange,
      live: () => node.live,
      needsCounts: () => node.needsCounts,
      busy: () => node.busy,
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      rpc: {
        blockStatus: () => respond("status", statusAt(node.height)),
        blockInfo() {
          const blockhashes = [0, 1, 2].map((age) => ({
            blockhash: hashAt(node.height - age),
            lastValidHeight: node.height - age + 150,
          }));
          return respond("blockInfo", { ...statusAt(node.height), blockhashes });
        },
      },
    },
    { heightMs: 500, idleHeightMs: 1_500, blockhashesMs: 1_000 },
  );
  const advance = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      await flushMicrotasks();
    }
  };
  /** Starts the watcher and waits until it has accepted a height, which takes two responses. */
  const start = async (): Promise<void> => {
    watcher.start();
    await flushMicrotasks();
    await advance(1_000);
  };
  return { clock, counters, blocks, quietRange, warnings, node, watcher, hashAt, advance, start };
}

describe("block watcher", () => {
  it("requests height and blockhashes immediately, and accepts the second response", async () => {
    const { watcher, node, blocks, hashAt, advance } = setUp();
    watcher.start();
    await flushMicrotasks();
    await advance(400);
    expect(node.requests).toEqual(["blockInfo"]);
    expect(blocks.height()).toBeNull();
    await advance(600);
    expect(node.requests).toEqual(["blockInfo", "status", "blockInfo"]);
    expect(blocks.height()).toBe(100);
    expect(blocks.lastValidHeight(hashAt(98))).toBe(248);
    expect(blocks.lastValidHeight(hashAt(100))).toBe(250);
  });

  it("polls the height every 1.5 s, or 500 ms while transactions are in flight", async () => {
    const { start, node, advance } = setUp();
    await start();
    node.requests.length = 0;
    await advance(6_000);
    expect(node.requests).toEqual(["status", "status", "status", "status"]);
    node.busy = true;
    await advance(1_500);
    node.requests.length = 0;
    await advance(2_000);
    expect(node.requests).toEqual(["status", "status", "status", "status"]);
  });

  it("requests blockhashes if an unknown one is looked up, at most once per second", async () => {
    const { start, node, advance, blocks, hashAt } = setUp();
    node.busy = true;
    await start();
    await advance(2_000);
    node.height = 103;
    node.requests.length = 0;
    expect(blocks.lastValidHeight(hashAt(103))).toBeNull();
    await advance(500);
    expect(node.requests).toEqual(["blockInfo"]);
    expect(blocks.lastValidHeight(hashAt(103))).toBe(253);
    node.requests.length = 0;
    for (let step = 0; step < 20; step += 1) {
      expect(blocks.lastValidHeight(hashAt(7))).toBeNull();
      await advance(100);
    }
    expect(node.requests).toEqual(["status", "blockInfo", "status", "blockInfo"]);
  });

  it("requests only unknown blockhashes while a stream reports every block", async () => {
    const { start, node, advance, blocks, hashAt } = setUp();
    await start();
    node.live = true;
    node.requests.length = 0;
    await advance(3_000);
    expect(node.requests).toEqual([]);
    blocks.lastValidHeight(hashAt(7));
    await advance(1_500);
    expect(node.requests).toEqual(["blockInfo"]);
    node.live = false;
    await advance(1_500);
    expect(node.requests).toEqual(["blockInfo", "status"]);
  });

  it("reads transaction counts where a stream reports the heights but no count", async () => {
    const { start, node, advance, quietRange } = setUp();
    await start();
    node.live = true;
    node.needsCounts = true;
    await advance(1_500);
    node.height += 3;
    await advance(1_500);
    expect(quietRange.contentOf(1_101, 1_103)).toBe("empty");
    node.transactions += 1;
    node.height += 3;
    await advance(1_500);
    expect(quietRange.contentOf(1_101, 1_106)).toBe("unknown");
  });

  it("ignores the transaction count of a block with an implausible height", async () => {
    const { start, node, advance, quietRange } = setUp();
    await start();
    node.height += 3;
    await advance(1_500);
    const before = quietRange.contentOf(1_101, 1_103);
    node.height = 9_000_000;
    node.transactions += 1;
    await advance(1_500);
    expect([before, quietRange.contentOf(1_101, 1_103)]).toEqual(["empty", "empty"]);
  });

  it("ignores blockhashes with an implausible height, and requests them again", async () => {
    const { start, node, advance, blocks, hashAt } = setUp();
    await start();
    node.busy = true;
    await advance(1_500);
    node.height = 9_000_000;
    expect(blocks.lastValidHeight(hashAt(103))).toBeNull();
    await advance(500);
    expect(node.requests.at(-1)).toBe("blockInfo");
    expect(blocks.height()).toBe(100);
    expect(blocks.lastValidHeight(hashAt(9_000_000))).toBeNull();
    node.height = 103;
    await advance(1_000);
    expect(blocks.height()).toBe(103);
    expect(blocks.lastValidHeight(hashAt(103))).toBe(253);
  });

  it("keeps its height, warns once and backs off while the node is down", async () => {
    const { start, node, advance, counters, blocks, warnings, hashAt } = setUp();
    node.busy = true;
    await start();
    node.down = true;
    blocks.lastValidHeight(hashAt(7));
    await advance(10_000);
    expect(blocks.height()).toBe(100);
    expect(warnings).toEqual(["the cluster's blocks could not be read"]);
    expect(counters.blockFailures).toBeGreaterThan(2);
    expect(counters.blockFailures).toBeLessThan(7);
    node.down = false;
    node.height = 130;
    await advance(8_000);
    expect(blocks.height()).toBe(130);
    // The blockhash requested meanwhile is still fetched.
    expect(
      node.requests.at(-1) === "blockInfo" || blocks.lastValidHeight(hashAt(130)) === 280,
    ).toBe(true);
  });

  it("cancels its timers when stopped", async () => {
    const { start, watcher, clock } = setUp();
    await start();
    watcher.stop();
    expect(clock.pending).toBe(0);
  });
});
