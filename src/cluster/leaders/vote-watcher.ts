/**
 * Keeps the set of delinquent leaders: those whose slots are most likely to stay empty; and the
 * stake of each identity, from the same response.
 *
 * On failure the known set stays until a newer one is read; a response that names most validators
 * delinquent counts as one.
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
      sink.setDelinquent(delinquent);
      sink.setStakes(stakes);
      return intervalMs;
    },
    onFailure: warnAtFirst(log, "the delinquent leaders could not be read", () => {
      counters.voteFailures += 1;
    }),
  });
}
