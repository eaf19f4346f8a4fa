/**
 * Receives slots, transactions, block heights and blockhashes over Yellowstone gRPC.
 *
 *   slot ─▶ router      status ─▶ landing tracker      block ─▶ blocks
 *
 * A transaction is reported as soon as a processed block holds it, before that is confirmed. A
 * block's height and content count once its slot is confirmed. A stream that ends or stays
 * silent is reopened with a back-off from 0.5 s to 30 s, which restarts at the first update.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import { decodeBase58 } from "../../core/encoding.ts";
import { BLOCKHASH_AGE_MAX } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import { type BackOffOptions, createBackOff } from "../back-off.ts";
import type { Blocks } from "../blocks/blocks.ts";
import type { ClusterCounters } from "../counters.ts";
import { GEYSER_BLOCKS_MAX } from "../limits.ts";
import type { ClusterSink, SlotEventKind } from "../ports.ts";
import type { GeyserUpdate, SlotStage } from "./codec.ts";
import type { GeyserEvents, GeyserStream } from "./stream.ts";

export interface GeyserWatcherDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Opens one stream. */
  readonly open: (events: GeyserEvents) => GeyserStream;
  readonly sink: Pick<ClusterSink, "slotEvent">;
  readonly blocks: Blocks;
  /** A block holds a transaction; the signature (64 bytes) is borrowed for the call. */
  readonly onProcessed: (signature: Uint8Array, slot: number, error: string | null) => void;
  /** The cluster confirmed the block of a slot. */
  readonly onConfirmed: (slot: number) => void;
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

export function createGeyserWatcher(
  deps: GeyserWatcherDeps,
  options: GeyserWatcherOptions,
): GeyserWatcher {
  const { clock, log, open, sink, blocks, onProcessed, onConfirmed, counters } = deps;
  const waits = createBackOff(deps.backOff);
  /** Heights of unconfirmed blocks by slot, oldest first. */
  const heights = new Map<number, number>();
  let stream: GeyserStream | null = null;
  let timer: Timer | null = null;
  let silenceTimer: Timer | null = null;
  let aliveNs = 0;
  let blockNs: number | null = null;
  let lossReported = false;

  const within = (thenNs: number | null, ms: number): boolean =>
    thenNs !== null && clock.nowNs() - thenNs <= ms * NS_PER_MS;

  function connect(): void {
    aliveNs = clock.nowNs();
    timer = null;
    counters.geyserOpened += 1;
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
    if (stream === null || within(aliveNs, options.reconnectMs)) return;
    stream.end();
    counters.geyserSilent += 1;
    lost("it was silent");
  }

  function onUpdate(update: GeyserUpdate): void {
    aliveNs = clock.nowNs();
    counters.geyserUpdates += 1;
    waits.reset();
    lossReported = false;
    switch (update.kind) {
      case "slot":
        onSlot(update.slot, update.stage);
        break;
      case "status":
        counters.geyserStatuses += 1;
        onProcessed(update.signature, update.slot, update.error);
        break;
      case "block":
        onBlock(update);
        break;
      case "ping":
      case "other":
        break;
      default:
        update satisfies never;
    }
  }

  function onSlot(slot: number, stage: SlotStage): void {
    if (stage === "confirmed") {
      const height = heights.get(slot);
      if (height !== undefined) blocks.setHeight(height);
      onConfirmed(slot);
    }
    const kind = KINDS[stage];
    if (kind === undefined) return;
    sink.slotEvent(kind, slot, "grpc");
  }

  function onBlock({ slot, blockhash, height }: GeyserUpdate & { readonly kind: "block" }): void {
    const bytes = decodeBase58(blockhash, 32);
    if (bytes?.length !== 32 || height === null) {
      counters.geyserGarbage += 1;
      return;
    }
    blockNs = aliveNs;
    blocks.add(bytes, height + BLOCKHASH_AGE_MAX);
    heights.set(slot, height);
    if (heights.size <= GEYSER_BLOCKS_MAX) return;
    for (const oldest of heights.keys()) {
      heights.delete(oldest);
      break;
    }
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
