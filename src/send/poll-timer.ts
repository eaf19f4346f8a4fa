/**
 * Looks at what time brings, again and again: often while something waits, and rarely otherwise.
 *
 * Each look says when the next one is due. What waits from now on, and is not known to the last
 * look, calls for a look soon. An edge that has nothing to do is woken five times a second instead
 * of twenty, together with all that can be early (`core/rounds.ts`), and waking it costs more than
 * the look.
 */

import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";

/** Between two looks while something waits, and at most. */
export const POLL_FAST_MS = 50;
export const POLL_SLOW_MS = 200;

export interface PollTimer {
  start(): void;
  stop(): void;
  /** The next look is due within this time; POLL_FAST_MS where something waits from now on. */
  within(waitMs: number): void;
}

/** `look` answers in how many milliseconds it is due again, POLL_SLOW_MS at most. */
export function createPollTimer(clock: Clock, poll: () => number): PollTimer {
  let timer: Timer | null = null;
  let running = false;
  /** When the next look is due. */
  let dueNs = 0;

  function arm(waitMs: number): void {
    const boundedMs = Math.min(Math.max(1, waitMs), POLL_SLOW_MS);
    dueNs = clock.nowNs() + boundedMs * NS_PER_MS;
    timer = clock.after(boundedMs, fire);
  }

  function fire(): void {
    timer = null;
    // Who calls for a look while it looks is seen by it, or by its answer.
    dueNs = 0;
    const waitMs = poll();
    if (running) arm(waitMs);
  }

  return {
    start() {
      if (running) return;
      running = true;
      arm(POLL_FAST_MS);
    },
    stop() {
      running = false;
      timer?.cancel();
      timer = null;
    },
    within(waitMs) {
      if (!running || dueNs <= clock.nowNs() + waitMs * NS_PER_MS) return;
      timer?.cancel();
      arm(waitMs);
    },
  };
}
