/**
 * Receives slots, transactions, block heights and blockhashes over Yellowstone gRPC.
 *
 *   slot ─▶ router      status ─▶ landing tracker      block ─▶ blocks
 *
 * A transaction is reported as soon as a processed block holds it, before that is confirmed. A
 * block's height and content count once its slot is confirmed. Finalized counts as confirmed,
 * because nodes before Agave 4.4 may finalize a slot that they never announce as confirmed. A
 * stream that ends, stays silent or only brings pings is reopened with a back-off from 0.5 s to
 * 30 s, which restarts at the first update other than a ping. The next stream may be of another
 * node, so its ids of banks are others.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import { decodeBase58 } from "../../core/encoding.ts";
import { BLOCKHASH_AGE_MAX } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import { type BackOffOptions, createBackOff } from "../back-off.ts";
import type { Blocks } from "../blocks/blocks.ts";
import type { ClusterCounters } from "../counters.ts";
import type { ClusterSink, LandingSink, SlotEventKind } from "../ports.ts";
import { BlockHeights } from "./block-heights.ts";
import type { GeyserUpdate, SlotStage } from "./codec.ts";
import type { GeyserEvents, GeyserStream } from "./stream.ts";

export interface GeyserWatcherDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Opens one stream. */
  readonly open: (events: GeyserEvents) => GeyserStream;
  readonly sink: Pick<ClusterSink, "slotEvent"> & LandingSink;
  readonly blocks: Blocks;
  readonly counters: ClusterCounters;
  readonly backOff: BackOffOptions;
}

export interface GeyserWatcherOptions {
  /** After this long without an update, the stream is not considered live. */
  readonly silenceMs: number;
  /** After this long without an update, the stream is reopened. */
  readonly reconnectMs: number;
}

export interface GeyserWatcher {
  start(): void;
  stop(): void;
  /** Whether the stream currently reports every block. */
  readonly blocksLive: boolean;
}

/** Slot event of each stage; the other stages mark neither start nor end. */
const KINDS: Readonly<Partial<Record<SlotStage, SlotEventKind>>> = {
  firstShred: "start",
  created: "start",
  completed: "end",
  processed: "end",
};

/**
 * The watcher reopens a stream that brings pings alone after this many times `reconnectMs`. While
 * the cluster stands still, a working stream brings nothing else.
 */
const PINGS_ONLY_FACTOR = 3;

export function createGeyserWatcher(
  deps: GeyserWatcherDeps,
  options: GeyserWatcherOptions,
): GeyserWatcher {
  const { clock, log, open, sink, blocks, counters } = deps;
  const waits = createBackOff(deps.backOff);
  const heights = new BlockHeights();
  let stream: GeyserStream | null = null;
  let timer: Timer | null = null;
  let silenceTimer: Timer | null = null;
  let aliveNs = 0;
  /** When the latest update other than a ping arrived. */
  let dataNs = 0;
  let blockNs: number | null = null;
  let lossReported = false;

  const within = (thenNs: number | null, ms: number): boolean =>
    thenNs !== null && clock.nowNs() - thenNs <= ms * NS_PER_MS;

  function connect(): void {
    aliveNs = clock.nowNs();
    dataNs = aliveNs;
    timer = null;
    counters.geyserOpened += 1;
    heights.forgetBanks();
    sink.forgetBanks();
    stream = open({
      update: onUpdate,
      garbage: () => {
        counters.geyserGarbage += 1;
      },
      closed: lost,
    });
  }

  function lost(reason: string): void {
    stream = null;
    counters.geyserClosed += 1;
    if (!lossReported) log.warn({ reason }, "the gRPC stream ended; it is opened again");
    lossReported = true;
    timer = clock.after(waits.next(), connect);
  }

  function check(): void {
    const { reconnectMs } = options;
    const isAlive = within(aliveNs, reconnectMs);
    if (stream === null || (isAlive && within(dataNs, PINGS_ONLY_FACTOR * reconnectMs))) return;
    // The stream worked for a minute, and the cluster may stand still: the next one opens soon.
    if (isAlive) waits.reset();
    stream.end();
    counters.geyserSilent += 1;
    lost("it was silent");
  }

  function onUpdate(update: GeyserUpdate): void {
    aliveNs = clock.nowNs();
    counters.geyserUpdates += 1;
    // A node that refuses the subscription may ping before it closes the stream.
    if (update.kind === "ping" || update.kind === "other") return;
    dataNs = aliveNs;
    waits.reset();
    lossReported = false;
    switch (update.kind) {
      case "slot":
        onSlot(update);
        break;
      case "status":
        counters.geyserStatuses += 1;
        sink.processed(update.signature, update.slot, update.error, update.bank);
        break;
      case "block":
        onBlock(update);
        break;
      default:
        update satisfies never;
    }
  }

  function onSlot({ slot, stage, bank }: GeyserUpdate & { readonly kind: "slot" }): void {
    if (stage === "confirmed" || stage === "finalized") {
      const height = heights.take(slot, bank);
      if (height !== null) blocks.setHeight(height);
      sink.confirmed(slot, bank);
    }
    const kind = KINDS[stage];
    if (kind === undefined) return;
    sink.slotEvent(kind, slot, "grpc");
  }

  function onBlock(update: GeyserUpdate & { readonly kind: "block" }): void {
    const { slot, bank, blockhash, height } = update;
    const bytes = decodeBase58(blockhash, 32);
    if (bytes?.length !== 32 || height === null) {
      counters.geyserGarbage += 1;
      return;
    }
    blockNs = aliveNs;
    blocks.add(bytes, height + BLOCKHASH_AGE_MAX);
    heights.add(slot, bank, height);
  }

  return {
    start() {
      if (silenceTimer !== null) return;
      silenceTimer = clock.every(options.silenceMs, check);
      connect();
    },
    stop() {
      silenceTimer?.cancel();
      timer?.cancel();
      silenceTimer = null;
      timer = null;
      stream?.end();
      stream = null;
    },
    get blocksLive() {
      return within(blockNs, options.silenceMs);
    },
  };
}
