/**
 * Looks at what time brings, again and again: often while something waits, and rarely otherwise.
 *
 * Each look says when the next one is due. What waits from now on, and is not known to the last
 * look, calls for a look soon. An edge that has nothing to do is woken four times a second instead
 * of twenty, and waking it costs more than the look.
 */

import type { Clock, Timer } from "../core/clock.ts";

/** Between two looks while something waits, and at most. */
export const LOOK_SOON_MS = 50;
export const LOOK_LATE_MS = 250;

export interface Ticker {
  start(): void;
  stop(): void;
  /** Something waits: the next look is due within LOOK_SOON_MS. */
  hurry(): void;
}

/** `look` answers in how many milliseconds it is due again, LOOK_LATE_MS at most. */
export function createTicker(clock: Clock, look: () => number): Ticker {
  let timer: Timer | null = null;
  let running = false;
  let soon = false;

  function arm(waitMs: number): void {
    soon = waitMs <= LOOK_SOON_MS;
    timer = clock.after(Math.min(Math.max(1, waitMs), LOOK_LATE_MS), fire);
  }

  function fire(): void {
    timer = null;
    // Whoever hurries while it looks is seen by the look, or by its answer.
    soon = true;
    const waitMs = look();
    if (running) arm(waitMs);
  }

  return {
    start() {
      if (running) return;
      running = true;
      arm(LOOK_SOON_MS);
    },
    stop() {
      running = false;
      timer?.cancel();
      timer = null;
    },
    hurry() {
      if (soon || !running) return;
      timer?.cancel();
      arm(LOOK_SOON_MS);
    },
  };
}
