/**
 * Long work on the thread that also serves clients, a share at a time: what comes meanwhile waits
 * for one share, a fraction of a millisecond, and not for all of it.
 *
 * Decision: docs/decisions/0032-long-work-in-slices.md
 */

import type { Clock, Timer } from "../core/clock.ts";

export interface TimeSlicer {
  /** Whether shares are left. */
  readonly isBusy: boolean;
  /** Does a share now and the others in turns of their own; nothing new while it is busy. */
  start(): void;
  /** Does all that is left now. */
  finish(): void;
  /** Leaves undone what is left. */
  stop(): void;
}

/** `share` does a bounded part of the work and answers whether there is more. */
export function createTimeSlicer(clock: Pick<Clock, "after">, slice: () => boolean): TimeSlicer {
  let timer: Timer | null = null;
  const stop = (): void => {
    timer?.cancel();
    timer = null;
  };
  const runSlice = (): void => {
    timer = slice() ? clock.after(0, runSlice) : null;
  };
  return {
    get isBusy() {
      return timer !== null;
    },
    start() {
      if (timer === null) runSlice();
    },
    finish() {
      if (timer === null) return;
      stop();
      while (slice());
    },
    stop,
  };
}
