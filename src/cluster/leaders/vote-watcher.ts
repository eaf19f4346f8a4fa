/**
 * Keeps the set of delinquent leaders: those whose slots are most likely to stay empty.
 *
 * On failure the known set stays until a newer one is read.
 */

import { createPollLoop, type PollLoop, warnAtFirst } from "../polling-loop.ts";
import type { WatcherDeps, WatcherOptions } from "./watcher-deps.ts";

export function createVoteWatcher(
  deps: WatcherDeps<"delinquent", "setDelinquent">,
  { intervalMs }: WatcherOptions,
): PollLoop {
  const { clock, log, rpc, sink, counters, backOff } = deps;
  return createPollLoop({
    clock,
    backOff,
    async poll() {
      counters.voteFetches += 1;
      sink.setDelinquent?.(await rpc.delinquent());
      return intervalMs;
    },
    onFailure: warnAtFirst(log, "the delinquent leaders could not be read", () => {
      counters.voteFailures += 1;
    }),
  });
}
