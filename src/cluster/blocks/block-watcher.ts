/**
 * Polls the block height and the valid blockhashes.
 *
 * The height is polled often while transactions are in flight, because it decides when they expire,
 * and rarely otherwise. All blockhashes are read in one request, and only after a caller looked up
 * an unknown one. Where a node returns only the latest blockhash, some are never known, and callers
 * must handle that. While a stream reports every block (`live`), only wanted data is requested.
 * Blockhashes that come with an implausible height are ignored.
 */

import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { BackOffOptions } from "../back-off.ts";
import type { ClusterCounters } from "../counters.ts";
import { createPollLoop, type PollLoop, warnAtFirst } from "../polling-loop.ts";
import type { BlockStatus } from "../rpc/responses.ts";
import type { Rpc } from "../rpc/rpc.ts";
import type { Blocks } from "./blocks.ts";
import type { QuietRange } from "./quiet-range.ts";

export interface BlockWatcherDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "blockStatus" | "blockInfo">;
  readonly blocks: Blocks;
  readonly quietRange: Pick<QuietRange, "observe">;
  /** Whether another source currently reports every block's height. */
  readonly live: () => boolean;
  /** Whether transaction counts are needed, which only this watcher reads. */
  readonly needsCounts: () => boolean;
  /** Whether transactions are in flight. */
  readonly busy: () => boolean;
  readonly counters: ClusterCounters;
  readonly backOff: BackOffOptions;
}

export interface BlockWatcherOptions {
  /** Time between two height requests, with and without transactions in flight. */
  readonly heightMs: number;
  readonly idleHeightMs: number;
  /** Minimum time between two blockhash requests. */
  readonly blockhashesMs: number;
}

export function createBlockWatcher(deps: BlockWatcherDeps, options: BlockWatcherOptions): PollLoop {
  const { clock, log, rpc, blocks, quietRange, live, needsCounts, busy, counters, backOff } = deps;
  const { heightMs, idleHeightMs, blockhashesMs } = options;
  let listedNs = Number.NEGATIVE_INFINITY;

  /** Returns whether the block's height is plausible. */
  function accept({ slot, height, transactionCount }: BlockStatus): boolean {
    if (!blocks.setHeight(height)) return false;
    quietRange.observe(slot, transactionCount);
    return true;
  }

  async function readBlocks(): Promise<void> {
    const nowNs = clock.nowNs();
    const isWanted = blocks.wanted && nowNs - listedNs >= blockhashesMs * NS_PER_MS;
    if (!isWanted && live() && !needsCounts()) return;
    counters.blockPolls += 1;
    if (!isWanted) {
      accept(await rpc.blockStatus());
      return;
    }
    listedNs = nowNs;
    const info = await rpc.blockInfo();
    const { blockhashes } = info;
    // If a node's height is implausible, the rest of its response is ignored too and `wanted` stays
    // set.
    if (!accept(info)) return;
    blocks.clearWanted();
    // Oldest first, because entries are evicted in insertion order.
    for (const each of blockhashes.toReversed()) blocks.add(each.blockhash, each.lastValidHeight);
  }

  return createPollLoop({
    clock,
    backOff,
    async poll() {
      await readBlocks();
      return busy() || blocks.wanted ? heightMs : idleHeightMs;
    },
    onFailure: warnAtFirst(log, "the cluster's blocks could not be read", () => {
      counters.blockFailures += 1;
    }),
  });
}
