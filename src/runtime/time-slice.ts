/**
 * Splits long work on the thread that also serves clients into slices: other work waits for one
 * slice, a fraction of a millisecond, not for all of it.
 *
 * Decision: docs/decisions/0032-long-work-in-slices.md
 */

import type { Clock, Timer } from "../core/clock.ts";

export interface TimeSlicer {
  /** Whether slices are left. */
  readonly isBusy: boolean;
  /**
   * Runs one slice now and each further slice in its own turn of the event loop; no effect while
   * busy.
   */
  start(): void;
  /** Runs all remaining slices now. */
  finish(): void;
  /** Abandons the remaining slices. */
  stop(): void;
}

/** `slice` does a bounded part of the work and returns whether there is more. */
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
