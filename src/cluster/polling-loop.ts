/**
 * Polling loop: repeats one action after the delay it returns, or with back-off after a failure.
 *
 * Never runs two at a time. A poll can be brought forward, subject to a minimum gap. The result of
 * a poll pending at `stop` is discarded.
 */

import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { type BackOffOptions, createBackOff } from "./back-off.ts";

export interface PollLoop {
  start(): void;
  stop(): void;
  /** Polls as soon as `gapMs` have passed since the last poll began. */
  pollNow(gapMs: number): void;
}

export interface PollLoopDeps {
  readonly clock: Clock;
  readonly backOff: BackOffOptions;
  /** Polls once; returns the time until the next poll in milliseconds. */
  readonly poll: () => Promise<number>;
  /** Called on each failure with the number of consecutive failures. */
  readonly onFailure: (error: unknown, failures: number) => void;
}

/** An `onFailure` that counts each failure and logs the first of consecutive ones. */
export function warnAtFirst(log: Log, text: string, count: () => void): PollLoopDeps["onFailure"] {
  return (error, failures) => {
    count();
    const reason = messageOf(error);
    if (failures === 1) log.warn({ reason }, text);
  };
}

export function createPollLoop({ clock, backOff, poll, onFailure }: PollLoopDeps): PollLoop {
  const waits = createBackOff(backOff);
  let timer: Timer | null = null;
  let running = false;
  let failures = 0;
  let startedNs = 0;
  /** When the next poll is due; null while one is pending. */
  let dueNs: number | null = null;
  /** Set when `pollNow` was called while a poll was pending. */
  let pollNowGapMs: number | null = null;

  async function once(): Promise<number> {
    try {
      const waitMs = await poll();
      failures = 0;
      waits.reset();
      return waitMs;
    } catch (error) {
      failures += 1;
      if (running) onFailure(error, failures);
      return waits.next();
    }
  }

  function run(): void {
    startedNs = clock.nowNs();
    dueNs = null;
    pollNowGapMs = null;
    void once().then((waitMs) => {
      if (!running) return;
      arm(waitMs);
      if (pollNowGapMs !== null) pollNow(pollNowGapMs);
    });
  }

  function arm(waitMs: number): void {
    dueNs = clock.nowNs() + waitMs * NS_PER_MS;
    timer = clock.after(waitMs, run);
  }

  function pollNow(gapMs: number): void {
    if (!running) return;
    if (dueNs === null) {
      pollNowGapMs = gapMs;
      return;
    }
    const waitMs = Math.max(0, gapMs - (clock.nowNs() - startedNs) / NS_PER_MS);
    if (clock.nowNs() + waitMs * NS_PER_MS >= dueNs) return;
    timer?.cancel();
    arm(waitMs);
  }

  return {
    start() {
      if (running) return;
      running = true;
      run();
    },
    stop() {
      running = false;
      timer?.cancel();
      timer = null;
    },
    pollNow,
  };
}
