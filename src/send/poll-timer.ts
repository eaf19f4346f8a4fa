/**
 * Polls time-driven work: often while something is queued, rarely otherwise.
 *
 * Each poll returns when the next one is due. Work queued after the last poll requests one soon. An
 * idle edge wakes 5 times per second instead of 20, together with all timers that may fire early
 * (`runtime/coalesced-timers.ts`); the wake-up costs more than the poll.
 */

import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";

/** Interval between polls while something is queued, and the maximum. */
export const POLL_FAST_MS = 50;
export const POLL_SLOW_MS = 200;

export interface PollTimer {
  start(): void;
  stop(): void;
  /** The next poll is due within this time; use POLL_FAST_MS when something was queued. */
  within(waitMs: number): void;
}

/** `poll` returns in how many milliseconds it is due again; POLL_SLOW_MS is the maximum. */
export function createPollTimer(clock: Clock, poll: () => number): PollTimer {
  let timer: Timer | null = null;
  let running = false;
  /** When the next poll is due. */
  let dueNs = 0;

  function arm(waitMs: number): void {
    const boundedMs = Math.min(Math.max(1, waitMs), POLL_SLOW_MS);
    dueNs = clock.nowNs() + boundedMs * NS_PER_MS;
    timer = clock.after(boundedMs, fire);
  }

  function fire(): void {
    timer = null;
    // A request made during the poll is covered by the poll or by its result.
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
