/**
 * One timer for the timeouts of all QUIC connections. Hot path: `touch`.
 *
 * Each packet moves its connection's loss timer, and arming a timer for each would cost more than
 * the packet. So a connection that did something asks for a sweep within a few milliseconds, which
 * is sharp enough for timers of 25 ms and more, and a sweep asks every connection when it is next
 * due.
 */

import type { Clock, Timer } from "../../core/clock.ts";

/** A busy connection's timers are at most this late. */
const SCAN_MS = 5;

export interface TimeoutScan {
  /** A connection sent or received: its timers may have moved. */
  touch(): void;
  stop(): void;
}

/** `scanTimeouts` fires what is due and answers in how many milliseconds the next is; -1 for none. */
export function createTimeoutScan(clock: Clock, scanTimeouts: () => number): TimeoutScan {
  let timer: Timer | null = null;
  let soon = false;
  let stopped = false;

  function fire(): void {
    timer = null;
    soon = false;
    const nextMs = scanTimeouts();
    if (stopped || timer !== null || nextMs < 0) return;
    soon = nextMs <= SCAN_MS;
    timer = clock.after(Math.max(nextMs, 1), fire);
  }

  return {
    touch() {
      if (soon || stopped) return;
      soon = true;
      timer?.cancel();
      timer = clock.after(SCAN_MS, fire);
    },
    stop() {
      stopped = true;
      timer?.cancel();
      timer = null;
    },
  };
}
