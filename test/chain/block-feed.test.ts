import { describe, expect, it } from "vitest";
import { createBlockFeed } from "../../src/chain/block-feed.ts";
import { createBlocks } from "../../src/chain/blocks.ts";
import { createChainCounters } from "../../src/chain/counters.ts";
import { createFakeClock } from "../support/fake-clock.ts";

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

function setUp() {
  const clock = createFakeClock();
  const counters = createChainCounters();
  const blocks = createBlocks();
  const warnings: string[] = [];
  const node = { height: 100, away: false, live: false, asked: [] as string[] };
  const answer = <T>(name: string, value: T): Promise<T> => {
    node.asked.push(name);
    return node.away ? Promise.reject(new Error("away")) : Promise.resolve(value);
  };
  const hashAt = (height: number) => new Uint8Array(32).fill(height);
  const feeds = createBlockFeed(
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
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      rpc: {
        blockHeight: (commitment) => answer(`height ${commitment}`, node.height),
        latestBlockhash(commitment) {
          const height = node.height + (commitment === "processed" ? 1 : 0);
          const lastValidHeight = height + 150;
          return answer(`hash ${commitment}`, { blockhash: hashAt(height), lastValidHeight });
        },
      },
    },
    { heightMs: 500, blockhashMs: 400 },
  );
  const advance = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      await settle();
    }
  };
  const start = async (): Promise<void> => {
    for (const feed of feeds) feed.start();
    await settle();
  };
  return { clock, counters, blocks, warnings, node, feeds, hashAt, advance, start };
}

describe("the block feed", () => {
  it("asks at once for the confirmed height and for the hashes of both commitments", async () => {
    const { start, node, blocks, hashAt } = setUp();
    await start();
    expect(node.asked).toEqual(["height confirmed", "hash processed", "hash confirmed"]);
    expect(blocks.height()).toBe(100);
    expect(blocks.lastValidHeight(hashAt(100))).toBe(250);
    expect(blocks.lastValidHeight(hashAt(101))).toBe(251);
  });

  it("asks for the height twice a second and for hashes each 400 ms", async () => {
    const { start, node, advance } = setUp();
    await start();
    node.asked.length = 0;
    await advance(2000);
    expect(node.asked.filter((each) => each === "height confirmed")).toHaveLength(4);
    expect(node.asked.filter((each) => each === "hash processed")).toHaveLength(5);
  });

  it("asks nothing while a stream tells of every block, and again when it does not", async () => {
    const { start, node, advance, counters } = setUp();
    node.live = true;
    await start();
    await advance(3000);
    expect(node.asked).toEqual([]);
    expect(counters.blockPolls).toBe(0);
    node.live = false;
    await advance(500);
    expect(node.asked).toContain("height confirmed");
  });

  it("keeps what it knows when the node is away, says so once, and backs off", async () => {
    const { start, node, advance, counters, blocks, warnings } = setUp();
    await start();
    node.away = true;
    await advance(10_000);
    expect(blocks.height()).toBe(100);
    expect(warnings.sort()).toEqual([
      "the block height could not be read",
      "the latest blockhash could not be read",
    ]);
    expect(counters.blockFailures).toBeGreaterThan(4);
    expect(counters.blockFailures).toBeLessThan(14);
    node.away = false;
    node.height = 130;
    await advance(8000);
    expect(blocks.height()).toBe(130);
  });

  it("leaves no timer behind when stopped", async () => {
    const { start, feeds, clock } = setUp();
    await start();
    for (const feed of feeds) feed.stop();
    expect(clock.pending).toBe(0);
  });
});
