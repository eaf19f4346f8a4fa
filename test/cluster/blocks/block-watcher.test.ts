import { describe, expect, it } from "vitest";
import { createBlockWatcher } from "../../../src/cluster/blocks/block-watcher.ts";
import { createBlocks } from "../../../src/cluster/blocks/blocks.ts";
import { createClusterCounters } from "../../../src/cluster/counters.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

async function clearWanted(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

function setUp() {
  const clock = createFakeClock();
  const counters = createClusterCounters();
  const blocks = createBlocks(() => clock.nowNs(), counters);
  const warnings: string[] = [];
  const node = { height: 100, away: false, live: false, busy: false, asked: [] as string[] };
  const answer = <T>(name: string, value: T): Promise<T> => {
    node.asked.push(name);
    return node.away ? Promise.reject(new Error("away")) : Promise.resolve(value);
  };
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
      live: () => node.live,
      busy: () => node.busy,
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      rpc: {
        blockHeight: () => answer("height", node.height),
        blockInfo() {
          const blockhashes = [0, 1, 2].map((age) => ({
            blockhash: hashAt(node.height - age),
            lastValidHeight: node.height - age + 150,
          }));
          return answer("news", { height: node.height, blockhashes });
        },
      },
    },
    { heightMs: 500, idleHeightMs: 1_500, blockhashesMs: 1_000 },
  );
  const advance = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      await clearWanted();
    }
  };
  /** Starts the watcher until it knows the height, which takes two responses. */
  const start = async (): Promise<void> => {
    watcher.start();
    await clearWanted();
    await advance(1_000);
  };
  return { clock, counters, blocks, warnings, node, watcher, hashAt, advance, start };
}

describe("the block feed", () => {
  it("asks at once for height and all blockhashes, and believes the second answer", async () => {
    const { watcher, node, blocks, hashAt, advance } = setUp();
    watcher.start();
    await clearWanted();
    await advance(400);
    expect(node.asked).toEqual(["news"]);
    expect(blocks.height()).toBeNull();
    await advance(600);
    expect(node.asked).toEqual(["news", "height", "news"]);
    expect(blocks.height()).toBe(100);
    expect(blocks.lastValidHeight(hashAt(98))).toBe(248);
    expect(blocks.lastValidHeight(hashAt(100))).toBe(250);
  });

  it("asks for the height now and then, and often while transactions are in flight", async () => {
    const { start, node, advance } = setUp();
    await start();
    node.asked.length = 0;
    await advance(6_000);
    expect(node.asked).toEqual(["height", "height", "height", "height"]);
    node.busy = true;
    await advance(1_500);
    node.asked.length = 0;
    await advance(2_000);
    expect(node.asked).toEqual(["height", "height", "height", "height"]);
  });

  it("asks for blockhashes when an unknown one is wanted, once a second at most", async () => {
    const { start, node, advance, blocks, hashAt } = setUp();
    node.busy = true;
    await start();
    await advance(2_000);
    node.height = 103;
    node.asked.length = 0;
    expect(blocks.lastValidHeight(hashAt(103))).toBeNull();
    await advance(500);
    expect(node.asked).toEqual(["news"]);
    expect(blocks.lastValidHeight(hashAt(103))).toBe(253);
    node.asked.length = 0;
    for (let step = 0; step < 20; step += 1) {
      expect(blocks.lastValidHeight(hashAt(7))).toBeNull();
      await advance(100);
    }
    expect(node.asked).toEqual(["height", "news", "height", "news"]);
  });

  it("asks for nothing but what is wanted while a stream tells of every block", async () => {
    const { start, node, advance, blocks, hashAt } = setUp();
    await start();
    node.live = true;
    node.asked.length = 0;
    await advance(3_000);
    expect(node.asked).toEqual([]);
    blocks.lastValidHeight(hashAt(7));
    await advance(1_500);
    expect(node.asked).toEqual(["news"]);
    node.live = false;
    await advance(1_500);
    expect(node.asked).toEqual(["news", "height"]);
  });

  it("leaves what comes with a wild height, and asks for it again", async () => {
    const { start, node, advance, blocks, hashAt } = setUp();
    await start();
    node.busy = true;
    await advance(1_500);
    node.height = 9_000_000;
    expect(blocks.lastValidHeight(hashAt(103))).toBeNull();
    await advance(500);
    expect(node.asked.at(-1)).toBe("news");
    expect(blocks.height()).toBe(100);
    expect(blocks.lastValidHeight(hashAt(9_000_000))).toBeNull();
    node.height = 103;
    await advance(1_000);
    expect(blocks.height()).toBe(103);
    expect(blocks.lastValidHeight(hashAt(103))).toBe(253);
  });

  it("keeps what it knows when the node is away, says so once, and backs off", async () => {
    const { start, node, advance, counters, blocks, warnings, hashAt } = setUp();
    node.busy = true;
    await start();
    node.away = true;
    blocks.lastValidHeight(hashAt(7));
    await advance(10_000);
    expect(blocks.height()).toBe(100);
    expect(warnings).toEqual(["the cluster's blocks could not be read"]);
    expect(counters.blockFailures).toBeGreaterThan(2);
    expect(counters.blockFailures).toBeLessThan(7);
    node.away = false;
    node.height = 130;
    await advance(8_000);
    expect(blocks.height()).toBe(130);
    // The blockhash requested meanwhile is still fetched.
    expect(node.asked.at(-1) === "news" || blocks.lastValidHeight(hashAt(130)) === 280).toBe(true);
  });

  it("leaves no timer behind when stopped", async () => {
    const { start, watcher, clock } = setUp();
    await start();
    watcher.stop();
    expect(clock.pending).toBe(0);
  });
});
