/**
 * Keeps the block height and the recent blockhashes by asking for them.
 *
 * Blockhashes are asked for at both commitments, because senders take either. Blocks come faster
 * than the questions, so some hashes are never seen: whoever looks one up must bear with that.
 * While a stream tells of every block (`live`), nothing is asked.
 */

import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { BackOffOptions } from "./back-off.ts";
import type { Blocks } from "./blocks.ts";
import type { ChainCounters } from "./counters.ts";
import { createRefresh, type Refresh } from "./refresh.ts";
import type { Rpc } from "./rpc.ts";

export interface BlockFeedDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "blockHeight" | "latestBlockhash">;
  readonly blocks: Blocks;
  /** Whether somebody else tells of every block now. */
  readonly live: () => boolean;
  readonly counters: ChainCounters;
  readonly backOff: BackOffOptions;
}

export interface BlockFeedOptions {
  /** Time between two questions for the height, and for the blockhashes, in milliseconds. */
  readonly heightMs: number;
  readonly blockhashMs: number;
}

export function createBlockFeed(
  deps: BlockFeedDeps,
  options: BlockFeedOptions,
): readonly Refresh[] {
  const { clock, log, rpc, blocks, live, counters, backOff } = deps;

  function polling(what: string, everyMs: number, ask: () => Promise<void>): Refresh {
    return createRefresh({
      clock,
      backOff,
      async act() {
        if (live()) return everyMs;
        counters.blockPolls += 1;
        await ask();
        return everyMs;
      },
      onFailure(error, failures) {
        counters.blockFailures += 1;
        const reason = error instanceof Error ? error.message : String(error);
        if (failures === 1) log.warn({ reason }, `${what} could not be read`);
      },
    });
  }

  return [
    polling("the block height", options.heightMs, async () => {
      blocks.setHeight(await rpc.blockHeight("confirmed"));
    }),
    polling("the latest blockhash", options.blockhashMs, async () => {
      const both = [rpc.latestBlockhash("processed"), rpc.latestBlockhash("confirmed")];
      for (const each of await Promise.all(both)) {
        blocks.add(each.blockhash, each.lastValidHeight);
      }
    }),
  ];
}
