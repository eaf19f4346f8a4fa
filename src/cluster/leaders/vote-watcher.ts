/**
 * Keeps the set of delinquent leaders: those whose slots are most likely to stay empty; and the
 * stake of each identity, from the same response.
 *
 * On failure the known set stays until a newer one is read. A response by which most of the stake
 * is delinquent counts as a failure: a cluster without that stake makes no blocks, so the node saw
 * no recent votes.
 */

import { createPollLoop, type PollLoop, warnAtFirst } from "../polling-loop.ts";
import type { WatcherDeps, WatcherOptions } from "./watcher-deps.ts";

export function createVoteWatcher(
  deps: WatcherDeps<"votes", "setDelinquent" | "setStakes">,
  { intervalMs }: WatcherOptions,
): PollLoop {
  const { clock, log, rpc, sink, counters, backOff } = deps;
  return createPollLoop({
    clock,
    backOff,
    async poll() {
      counters.voteFetches += 1;
      const { delinquent, stakes } = await rpc.votes();
      sink.setStakes(stakes);
      const silent = sumOf(delinquent.map((identity) => stakes.get(identity) ?? 0));
      const all = sumOf([...stakes.values()]);
      if (silent * 2 > all) {
        const share = Math.round((silent / all) * 100);
        throw new Error(`${share} % of the stake is delinquent by getVoteAccounts`);
      }
      sink.setDelinquent(delinquent);
      return intervalMs;
    },
    onFailure: warnAtFirst(log, "the delinquent leaders could not be read", () => {
      counters.voteFailures += 1;
    }),
  });
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
