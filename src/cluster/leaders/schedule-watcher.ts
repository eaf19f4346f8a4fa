/**
 * Keeps the leader schedules of this epoch and the next.
 *
 * A schedule is fixed one epoch ahead, so each is fetched once, early: at the boundary nothing has
 * to be asked. A node may not know the next one yet, or be away; then it is asked again until it is
 * had, and at the latest when the boundary may have come. What it answers for an epoch in progress
 * must be there, and what it answers must make sense, or it is a failure. Where the node turns out
 * to be of another cluster, as a test cluster that was begun anew is, all is read anew.
 */

import type { Clock } from "../../core/clock.ts";
import { EPOCHS_MAX, SLOT_TIME_MS_MIN } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import type { BackOffOptions } from "../back-off.ts";
import type { ClusterCounters } from "../counters.ts";
import { createPollLoop, type PollLoop } from "../polling-loop.ts";
import type { ClusterSink } from "../ports.ts";
import type { EpochSpan, Rpc } from "../rpc/rpc.ts";

export interface ScheduleWatcherDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "epochs" | "leaders">;
  readonly sink: Pick<ClusterSink, "setEpoch" | "forgetEpochs">;
  readonly counters: ClusterCounters;
  readonly backOff: BackOffOptions;
  /** The node is of another cluster than before. */
  readonly onOther?: () => void;
}

export interface ScheduleWatcherOptions {
  /** Shortest and longest time between two looks at the epoch, in milliseconds. */
  readonly checkMsMin: number;
  readonly checkMsMax: number;
  /** How soon at the latest a next schedule that is not known yet is asked for again. */
  readonly nextRetryMs: number;
}

export function createScheduleWatcher(
  deps: ScheduleWatcherDeps,
  options: ScheduleWatcherOptions,
): PollLoop {
  const { clock, log, rpc, sink, counters, backOff, onOther } = deps;
  /** Epochs that were handed on, oldest first, at most EPOCHS_MAX. */
  let had: readonly EpochSpan[] = [];
  /** The cluster that they are of; null while no node told. */
  let cluster: string | null = null;

  function belongTo(genesis: string): void {
    if (cluster !== null && cluster !== genesis) {
      log.warn({ genesis, before: cluster }, "the node is of another cluster than before");
      sink.forgetEpochs?.();
      had = [];
      onOther?.();
    }
    cluster = genesis;
  }

  async function readSchedule(span: EpochSpan): Promise<boolean> {
    if (had.some((each) => sameSpan(each, span))) return true;
    const leaders = await rpc.leaders(span.firstSlot);
    if (leaders === null) return false;
    if (!sink.setEpoch({ ...span, leaders })) {
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
      // The shortest slots that there can be, so as not to sleep through a whole epoch.
      const remainingMs = (next.firstSlot - slot) * SLOT_TIME_MS_MIN;
      const longestMs = isNextKnown ? options.checkMsMax : options.nextRetryMs;
      return Math.min(longestMs, Math.max(options.checkMsMin, remainingMs));
    },
    onFailure(error, failures) {
      counters.scheduleFailures += 1;
      const reason = error instanceof Error ? error.message : String(error);
      if (failures === 1) log.warn({ reason }, "the leader schedule could not be read");
    },
  });
}

function sameSpan(a: EpochSpan, b: EpochSpan): boolean {
  return a.epoch === b.epoch && a.firstSlot === b.firstSlot && a.slots === b.slots;
}
