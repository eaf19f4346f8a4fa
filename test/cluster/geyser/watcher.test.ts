import { describe, expect, it } from "vitest";
import { ClusterCounters } from "../../../src/cluster/counters.ts";
import type { GeyserEvents } from "../../../src/cluster/geyser/stream.ts";
import { createGeyserWatcher } from "../../../src/cluster/geyser/watcher.ts";
import { toBase58 } from "../../support/base58.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { observedBlocks } from "../blocks/fixture.ts";

function setUp() {
  const clock = createFakeClock();
  const counters = new ClusterCounters();
  const blocks = observedBlocks(() => clock.nowNs(), counters);
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
      sink: {
        slotEvent: (kind, slot) => void calls.push(`${kind} ${slot}`),
        processed: (signature, slot, error, bank) =>
          void calls.push(`${signature[0]} in ${slot}${bankText(bank)}: ${error}`),
        confirmed: (slot, bank) => void calls.push(`confirmed ${slot}${bankText(bank)}`),
        forgetBanks: () => void calls.push("new ids of banks"),
      },
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

const bankText = (bank: number | null): string => (bank === null ? "" : ` (bank ${bank})`);

/** What was forwarded since the stream opened. */
const forwarded = (calls: readonly string[]): readonly string[] =>
  calls.slice(calls.lastIndexOf("new ids of banks") + 1);

const hash = (fill: number) => new Uint8Array(32).fill(fill);

/** The watcher opens the next stream after that time, and not before. */
function expectReopened({ clock, streams }: ReturnType<typeof setUp>, waitMs: number): void {
  const before = streams.length;
  clock.advance(waitMs - 1);
  expect(streams).toHaveLength(before);
  clock.advance(1);
  expect(streams).toHaveLength(before + 1);
}

describe("gRPC watcher", () => {
  it("forwards slot starts, ends and confirmations, and no other slot stages", () => {
    const { watcher, events, calls } = setUp();
    watcher.start();
    for (const stage of ["firstShred", "created", "completed", "processed"] as const) {
      events().update({ kind: "slot", slot: 7, stage, bank: null });
    }
    for (const stage of ["confirmed", "other"] as const) {
      events().update({ kind: "slot", slot: 8, stage, bank: null });
    }
    expect(forwarded(calls)).toEqual(["start 7", "start 7", "end 7", "end 7", "confirmed 8"]);
    watcher.stop();
  });

  it("takes a finalized slot for a confirmed one", () => {
    const { watcher, events, calls, blocks } = setUp();
    watcher.start();
    blocks.setHeight(99);
    blocks.setHeight(99);
    events().update({ kind: "block", slot: 7, blockhash: toBase58(hash(7)), height: 100, bank: 3 });
    events().update({ kind: "slot", slot: 7, stage: "finalized", bank: 3 });
    expect(forwarded(calls)).toEqual(["confirmed 7 (bank 3)"]);
    expect(blocks.height()).toBe(100);
    watcher.stop();
  });

  it("accepts the height of the confirmed bank only, and once", () => {
    const { watcher, events, blocks, counters } = setUp();
    watcher.start();
    blocks.setHeight(99);
    blocks.setHeight(99);
    for (const [bank, height] of [
      [3, 100],
      [4, 101],
    ] as const) {
      const blockhash = toBase58(hash(bank));
      events().update({ kind: "block", slot: 7, blockhash, height, bank });
    }
    events().update({ kind: "slot", slot: 7, stage: "confirmed", bank: 3 });
    expect(blocks.height()).toBe(100);
    // A finalized slot is far behind the newest, and its height may be implausible by then.
    blocks.setHeight(130);
    blocks.setHeight(160);
    events().update({ kind: "slot", slot: 7, stage: "finalized", bank: 3 });
    expect(blocks.lastValidHeight(hash(4))).toBe(251);
    expect(counters.heightsImplausible).toBe(1);
    watcher.stop();
  });

  it("reports that the next stream has other ids of banks, before its updates", () => {
    const { watcher, events, calls, clock, blocks } = setUp();
    watcher.start();
    blocks.setHeight(99);
    blocks.setHeight(99);
    const signature = new Uint8Array(64).fill(3);
    events().update({ kind: "block", slot: 7, blockhash: toBase58(hash(7)), height: 100, bank: 3 });
    events().update({ kind: "status", slot: 7, signature, error: null, bank: 3 });
    events().closed("gone");
    clock.advance(500);
    events().update({ kind: "slot", slot: 7, stage: "confirmed", bank: 40 });
    expect(calls).toEqual([
      "new ids of banks",
      "3 in 7 (bank 3): null",
      "new ids of banks",
      "confirmed 7 (bank 40)",
    ]);
    expect(blocks.height()).toBe(100);
    watcher.stop();
  });

  it("forwards landings with their errors", () => {
    const { watcher, events, calls, counters } = setUp();
    watcher.start();
    const signature = new Uint8Array(64).fill(3);
    events().update({ kind: "status", slot: 7, signature, error: null, bank: null });
    const error = '"AccountInUse"';
    events().update({ kind: "status", slot: 8, signature, error, bank: 5 });
    expect(forwarded(calls)).toEqual(["3 in 7: null", '3 in 8 (bank 5): "AccountInUse"']);
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
      events().update({ kind: "block", slot, blockhash: toBase58(hash(slot)), height, bank: null });
    }
    expect(blocks.lastValidHeight(hash(9))).toBe(251);
    // The first height is accepted only after a second report agrees with it.
    blocks.setHeight(99);
    blocks.setHeight(99);
    events().update({ kind: "slot", slot: 7, stage: "confirmed", bank: null });
    expect(blocks.height()).toBe(100);
    events().update({ kind: "slot", slot: 8, stage: "confirmed", bank: null });
    expect(blocks.height()).toBe(100);
    const block = { kind: "block", slot: 10, bank: null } as const;
    events().update({ ...block, blockhash: "0OIl", height: 102 });
    events().update({ ...block, blockhash: toBase58(hash(1)), height: null });
    expect(counters.geyserGarbage).toBe(2);
    watcher.stop();
  });

  it("is live only while block updates arrive, regardless of slot updates", () => {
    const { watcher, events, clock } = setUp();
    watcher.start();
    expect(watcher.blocksLive).toBe(false);
    events().update({ kind: "slot", slot: 7, stage: "firstShred", bank: null });
    expect(watcher.blocksLive).toBe(false);
    clock.advance(2_000);
    events().update({
      kind: "block",
      slot: 7,
      blockhash: toBase58(hash(7)),
      height: 1,
      bank: null,
    });
    clock.advance(1_000);
    expect(watcher.blocksLive).toBe(true);
    clock.advance(10_000);
    expect(watcher.blocksLive).toBe(false);
    watcher.stop();
  });

  it("reconnects after 0.5 s, doubling up to 30 s, and resets after an update", () => {
    const fixture = setUp();
    const { watcher, events, streams, clock, counters, warnings } = fixture;
    watcher.start();
    for (const waitMs of [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
      events().closed("gone");
      expectReopened(fixture, waitMs);
    }
    expect(warnings).toHaveLength(1);
    expect(counters).toMatchObject({ geyserClosed: 8, geyserOpened: 9 });
    events().update({ kind: "slot", slot: 7, stage: "firstShred", bank: null });
    events().closed("gone");
    clock.advance(500);
    expect(streams).toHaveLength(10);
    watcher.stop();
  });

  it("waits longer each time, and warns once, if a node accepts, pings and closes", () => {
    const fixture = setUp();
    const { watcher, events, warnings } = fixture;
    watcher.start();
    for (const waitMs of [500, 1000, 2000, 4000]) {
      events().update({ kind: "ping" });
      events().update({ kind: "other" });
      events().closed("too many streams");
      expectReopened(fixture, waitMs);
    }
    expect(warnings).toHaveLength(1);
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

  it("reopens and counts a stream that brings only pings for a minute", () => {
    const { watcher, events, streams, clock, counters } = setUp();
    watcher.start();
    const pingFor = (durationMs: number): void => {
      for (let ms = 0; ms < durationMs; ms += 2_500) {
        events().update({ kind: "ping" });
        clock.advance(2_500);
      }
    };
    pingFor(30_000);
    events().update({ kind: "slot", slot: 7, stage: "firstShred", bank: null });
    pingFor(60_000);
    expect(streams).toHaveLength(1);
    pingFor(2_500);
    expect([streams[0]?.ended, counters.geyserSilent]).toEqual([true, 1]);
    // The cluster may stand still: none waits longer than the first.
    for (const count of [2, 3, 4]) {
      clock.advance(500);
      expect(streams).toHaveLength(count);
      pingFor(62_500);
    }
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
