/**
 * Keeps the block height and the blockhashes that are valid by asking for them.
 *
 * The height is asked for often while transactions are in flight, for it says when they are too
 * old, and now and then while none is. All blockhashes are asked for in one question, and only when
 * somebody looked one up that is not known. Where a node tells the latest blockhash alone, some are
 * never seen: whoever looks one up must bear with that. While a stream tells of every block
 * (`live`), only what is wanted is asked for. What comes with a height that does not fit is left.
 */

import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { BackOffOptions } from "../back-off.ts";
import type { ClusterCounters } from "../counters.ts";
import { createPollLoop, type PollLoop } from "../polling-loop.ts";
import type { Rpc } from "../rpc/rpc.ts";
import type { Blocks } from "./blocks.ts";

export interface BlockWatcherDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "blockHeight" | "blockInfo">;
  readonly blocks: Blocks;
  /** Whether somebody else tells of every block now. */
  readonly live: () => boolean;
  /** Whether transactions are in flight. */
  readonly busy: () => boolean;
  readonly counters: ClusterCounters;
  readonly backOff: BackOffOptions;
}

export interface BlockWatcherOptions {
  /** Time between two questions for the height, with and without transactions in flight. */
  readonly heightMs: number;
  readonly idleHeightMs: number;
  /** Shortest time between two questions for blockhashes. */
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
    // Of a node whose height is doubted nothing else is believed; what is wanted stays so.
    if (!blocks.setHeight(height)) return;
    blocks.clearWanted();
    // The oldest first, because what was told first is forgotten first.
    for (const each of blockhashes.toReversed()) blocks.add(each.blockhash, each.lastValidHeight);
  }

  return createPollLoop({
    clock,
    backOff,
    async poll() {
      await readBlocks();
      return busy() || blocks.wanted ? heightMs : idleHeightMs;
    },
    onFailure(error, failures) {
      counters.blockFailures += 1;
      const reason = error instanceof Error ? error.message : String(error);
      if (failures === 1) log.warn({ reason }, "the chain's blocks could not be read");
    },
  });
}
