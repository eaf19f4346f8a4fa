/**
 * Keeps the set of delinquent leaders: those whose slots are most likely to stay empty.
 *
 * On failure the known set stays until a newer one is read.
 */

import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { BackOffOptions } from "../back-off.ts";
import type { ClusterCounters } from "../counters.ts";
import { createPollLoop, type PollLoop } from "../polling-loop.ts";
import type { ClusterSink } from "../ports.ts";
import type { Rpc } from "../rpc/rpc.ts";

export interface VoteWatcherDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "delinquent">;
  readonly sink: Pick<ClusterSink, "setDelinquent">;
  readonly counters: ClusterCounters;
  readonly backOff: BackOffOptions;
}

export interface VoteWatcherOptions {
  /** How often the votes are read, in milliseconds. */
  readonly intervalMs: number;
}

export function createVoteWatcher(deps: VoteWatcherDeps, options: VoteWatcherOptions): PollLoop {
  const { clock, log, rpc, sink, counters, backOff } = deps;
  return createPollLoop({
    clock,
    backOff,
    async poll() {
      counters.voteFetches += 1;
      sink.setDelinquent?.(await rpc.delinquent());
      return options.intervalMs;
    },
    onFailure(error, failures) {
      counters.voteFailures += 1;
      const reason = error instanceof Error ? error.message : String(error);
      if (failures === 1) log.warn({ reason }, "the delinquent leaders could not be read");
    },
  });
}
