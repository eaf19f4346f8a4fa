/**
 * Keeps the set of leaders that are delinquent: those whose slots are most likely to stay empty.
 *
 * A failure changes nothing; the set that is known stays until a newer one is had.
 */

import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { BackOffOptions } from "../back-off.ts";
import type { ChainCounters } from "../counters.ts";
import { createRefresh, type Refresh } from "../polling-loop.ts";
import type { Rpc } from "../rpc/rpc.ts";
import type { ChainTarget } from "../target.ts";

export interface VoteFeedDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "delinquent">;
  readonly target: Pick<ChainTarget, "setDelinquent">;
  readonly counters: ChainCounters;
  readonly backOff: BackOffOptions;
}

export interface VoteFeedOptions {
  /** How often the votes are asked for, in milliseconds. */
  readonly refreshMs: number;
}

export function createVoteFeed(deps: VoteFeedDeps, options: VoteFeedOptions): Refresh {
  const { clock, log, rpc, target, counters, backOff } = deps;
  return createRefresh({
    clock,
    backOff,
    async act() {
      counters.voteFetches += 1;
      target.setDelinquent?.(await rpc.delinquent());
      return options.refreshMs;
    },
    onFailure(error, failures) {
      counters.voteFailures += 1;
      const reason = error instanceof Error ? error.message : String(error);
      if (failures === 1) log.warn({ reason }, "the delinquent leaders could not be read");
    },
  });
}
