/**
 * One timer for the timeouts of all QUIC connections. Hot path: `touch`.
 *
 * Each packet moves its connection's loss timer, and arming a timer per packet would cost more than
 * the packet. So an active connection requests a scan within a few milliseconds, which is precise
 * enough for timers of 25 ms and more, and a scan asks every connection when it is next due.
 */

import type { Clock, Timer } from "../../core/clock.ts";

/** Maximum delay of the timers of an active connection. */
const SCAN_MS = 5;

export interface TimeoutScan {
  /** A connection sent or received: its timers may have moved. */
  touch(): void;
  stop(): void;
}

/** `scanTimeouts` fires due timers and returns the milliseconds until the next; -1 for none. */
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
