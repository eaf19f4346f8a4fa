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
import type { Rpc } from "../rpc/rpc.ts";
import type { Blocks } from "./blocks.ts";

export interface BlockWatcherDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "blockHeight" | "blockInfo">;
  readonly blocks: Blocks;
  /** Whether another source currently reports every block. */
  readonly live: () => boolean;
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
  const { clock, log, rpc, blocks, live, busy, counters, backOff } = deps;
  const { heightMs, idleHeightMs, blockhashesMs } = options;
  let listedNs = Number.NEGATIVE_INFINITY;

  async function readBlocks(): Promise<void> {
    const nowNs = clock.nowNs();
    const isWanted = blocks.wanted && nowNs - listedNs >= blockhashesMs * NS_PER_MS;
    if (!isWanted && live()) return;
    counters.blockPolls += 1;
    if (!isWanted) {
      blocks.setHeight(await rpc.blockHeight());
      return;
    }
    listedNs = nowNs;
    const { height, blockhashes } = await rpc.blockInfo();
    // If a node's height is implausible, the rest of its response is ignored too and `wanted` stays
    // set.
    if (!blocks.setHeight(height)) return;
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
