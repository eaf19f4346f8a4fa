import { describe, expect, it } from "vitest";
import { createBlocks } from "../../../src/cluster/blocks/blocks.ts";
import { createClusterCounters } from "../../../src/cluster/counters.ts";
import type { GeyserEvents } from "../../../src/cluster/geyser/stream.ts";
import { createGeyserWatcher } from "../../../src/cluster/geyser/watcher.ts";
import { toBase58 } from "../../support/base58.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

function setUp() {
  const clock = createFakeClock();
  const counters = createClusterCounters();
  const blocks = createBlocks(() => clock.nowNs(), counters);
  const streams: { events: GeyserEvents; ended: boolean }[] = [];
  const calls: string[] = [];
  const warnings: string[] = [];
  const watcher = createGeyserWatcher(
    {
      clock,
      counters,
      blocks,
      log: {
        info: () => undefined,
        warn: (_fields, text) => warnings.push(text),
        error: () => undefined,
      },
      backOff: { firstMs: 500, maxMs: 30_000, random: () => 1 },
      sink: { slotEvent: (kind, slot) => void calls.push(`${kind} ${slot}`) },
      onProcessed: (signature, slot, error) =>
        void calls.push(`${signature[0]} in ${slot}: ${error}`),
      onConfirmed: (slot) => void calls.push(`confirmed ${slot}`),
      open(events) {
        const stream = { events, ended: false };
        streams.push(stream);
        return {
          end: () => {
            stream.ended = true;
          },
        };
      },
    },
    { silenceMs: 2_500, reconnectMs: 20_000 },
  );
  const events = (): GeyserEvents => {
    const latest = streams.at(-1);
    if (latest === undefined) throw new Error("no stream was opened");
    return latest.events;
  };
  return { clock, counters, blocks, streams, calls, warnings, watcher, events };
}

const hash = (fill: number) => new Uint8Array(32).fill(fill);

describe("gRPC watcher", () => {
  it("forwards slot starts, ends and confirmations, and no other slot stages", () => {
    const { watcher, events, calls } = setUp();
    watcher.start();
    for (const stage of ["firstShred", "created", "completed", "processed"] as const) {
      events().update({ kind: "slot", slot: 7, stage });
    }
    for (const stage of ["confirmed", "other"] as const) {
      events().update({ kind: "slot", slot: 8, stage });
    }
    expect(calls).toEqual(["start 7", "start 7", "end 7", "end 7", "confirmed 8"]);
    watcher.stop();
  });

  it("forwards landings with their errors", () => {
    const { watcher, events, calls, counters } = setUp();
    watcher.start();
    const signature = new Uint8Array(64).fill(3);
    events().update({ kind: "status", slot: 7, signature, error: null });
    events().update({ kind: "status", slot: 8, signature, error: '"AccountInUse"' });
    expect(calls).toEqual(["3 in 7: null", '3 in 8: "AccountInUse"']);
    expect(counters.geyserStatuses).toBe(2);
    watcher.stop();
  });

  it("records a blockhash immediately, and a height once its slot is confirmed", () => {
    const { watcher, events, blocks, counters } = setUp();
    watcher.start();
    for (const [slot, height] of [
      [7, 100],
      [9, 101],
    ] as const) {
      events().update({ kind: "block", slot, blockhash: toBase58(hash(slot)), height });
    }
    expect(blocks.lastValidHeight(hash(9))).toBe(251);
    // The first height is accepted only after a second report agrees with it.
    blocks.setHeight(99);
    blocks.setHeight(99);
    events().update({ kind: "slot", slot: 7, stage: "confirmed" });
    expect(blocks.height()).toBe(100);
    events().update({ kind: "slot", slot: 8, stage: "confirmed" });
    expect(blocks.height()).toBe(100);
    events().update({ kind: "block", slot: 10, blockhash: "0OIl", height: 102 });
    events().update({ kind: "block", slot: 10, blockhash: toBase58(hash(1)), height: null });
    expect(counters.geyserGarbage).toBe(2);
    watcher.stop();
  });

  it("is live only while block updates arrive, regardless of slot updates", () => {
    const { watcher, events, clock } = setUp();
    watcher.start();
    expect(watcher.blocksLive).toBe(false);
    events().update({ kind: "slot", slot: 7, stage: "firstShred" });
    expect(watcher.blocksLive).toBe(false);
    clock.advance(2_000);
    events().update({ kind: "block", slot: 7, blockhash: toBase58(hash(7)), height: 1 });
    clock.advance(1_000);
    expect(watcher.blocksLive).toBe(true);
    clock.advance(10_000);
    expect(watcher.blocksLive).toBe(false);
    watcher.stop();
  });

  it("reconnects after 0.5 s, doubling up to 30 s, and resets after an update", () => {
    const { watcher, events, streams, clock, counters, warnings } = setUp();
    watcher.start();
    for (const waitMs of [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
      const before = streams.length;
      events().closed("gone");
      clock.advance(waitMs - 1);
      expect(streams).toHaveLength(before);
      clock.advance(1);
      expect(streams).toHaveLength(before + 1);
    }
    expect(warnings).toHaveLength(1);
    expect(counters).toMatchObject({ geyserClosed: 8, geyserOpened: 9 });
    events().update({ kind: "ping" });
    events().closed("gone");
    clock.advance(500);
    expect(streams).toHaveLength(10);
    watcher.stop();
  });

  it("reopens and counts a stream that sends no updates", () => {
    const { watcher, events, streams, clock, counters } = setUp();
    watcher.start();
    for (let ms = 0; ms < 30_000; ms += 10_000) {
      clock.advance(10_000);
      events().update({ kind: "ping" });
    }
    expect(streams).toHaveLength(1);
    clock.advance(23_000);
    expect(streams[0]?.ended).toBe(true);
    expect(streams).toHaveLength(2);
    expect(counters.geyserSilent).toBe(1);
    watcher.stop();
  });

  it("counts undecodable messages, and stops its stream and timers", () => {
    const { watcher, events, streams, clock, counters } = setUp();
    watcher.start();
    events().garbage();
    expect(counters.geyserGarbage).toBe(1);
    watcher.stop();
    expect(streams[0]?.ended).toBe(true);
    expect(clock.pending).toBe(0);
  });
});
