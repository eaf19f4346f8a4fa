/**
 * Keeps the leader schedules of the current and the next epoch.
 *
 * A schedule is fixed one epoch ahead, so each is fetched once, early: nothing has to be requested
 * at the boundary. If a node does not know the next schedule yet, or is unreachable, it is asked
 * again until the schedule is known, at the latest when the boundary may have come. A missing
 * schedule for the current epoch, or an invalid schedule, is a failure. If the node turns out to
 * belong to another cluster, such as a test cluster that was restarted from genesis, everything is
 * read again.
 */

import { EPOCHS_MAX, SLOT_TIME_MS_MIN } from "../../core/limits.ts";
import { createPollLoop, type PollLoop, warnAtFirst } from "../polling-loop.ts";
import type { EpochSpan } from "../rpc/rpc.ts";
import type { WatcherDeps } from "./watcher-deps.ts";

export interface ScheduleWatcherOptions {
  /** Minimum and maximum time between two epoch checks, in milliseconds. */
  readonly checkMsMin: number;
  readonly checkMsMax: number;
  /** Maximum time until an unknown next schedule is requested again. */
  readonly nextRetryMs: number;
}

export function createScheduleWatcher(
  deps: WatcherDeps<"epochs" | "leaders", "setEpoch" | "forgetEpochs">,
  options: ScheduleWatcherOptions,
): PollLoop {
  const { clock, log, rpc, sink, counters, backOff } = deps;
  /** Epochs passed to the sink, oldest first, at most EPOCHS_MAX. */
  let had: readonly EpochSpan[] = [];
  /** The cluster they belong to; null while no node has reported it. */
  let cluster: string | null = null;

  function belongTo(genesis: string): void {
    if (cluster !== null && cluster !== genesis) {
      log.warn({ genesis, before: cluster }, "the node is of another cluster than before");
      sink.forgetEpochs();
      had = [];
    }
    cluster = genesis;
  }

  async function readSchedule(span: EpochSpan): Promise<boolean> {
    if (had.some((each) => sameSpan(each, span))) return true;
    const leaders = await rpc.leaders(span.firstSlot);
    if (leaders === null) return false;
    if (!(await sink.setEpoch({ ...span, leaders }))) {
      const found = `${leaders.size} leaders, ${span.slots} slots`;
      throw new Error(`the leader schedule of epoch ${span.epoch} makes no sense: ${found}`);
    }
    had = [...had.filter((each) => each.epoch !== span.epoch), span].slice(-EPOCHS_MAX);
    log.info({ epoch: span.epoch, leaders: leaders.size }, "leader schedule read");
    return true;
  }

  return createPollLoop({
    clock,
    backOff,
    async poll() {
      counters.scheduleFetches += 1;
      const { slot, current, next, genesis } = await rpc.epochs();
      if (genesis !== null) belongTo(genesis);
      if (!(await readSchedule(current))) {
        throw new Error(`the node has no leader schedule for epoch ${current.epoch}`);
      }
      const isNextKnown = await readSchedule(next);
      // Assumes the shortest possible slots, so as not to sleep past a complete epoch.
      const remainingMs = (next.firstSlot - slot) * SLOT_TIME_MS_MIN;
      const longestMs = isNextKnown ? options.checkMsMax : options.nextRetryMs;
      return Math.min(longestMs, Math.max(options.checkMsMin, remainingMs));
    },
    onFailure: warnAtFirst(log, "the leader schedule could not be read", () => {
      counters.scheduleFailures += 1;
    }),
  });
}

function sameSpan(a: EpochSpan, b: EpochSpan): boolean {
  return a.epoch === b.epoch && a.firstSlot === b.firstSlot && a.slots === b.slots;
}
