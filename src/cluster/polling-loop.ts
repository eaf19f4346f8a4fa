/**
 * Does one thing again and again: after a success when it says so, after a failure with back-off.
 *
 * Never two at a time. It can be hastened, but not to more than one in a set time. What it has in
 * hand when it is stopped comes to nothing.
 */

import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";
import { type BackOffOptions, createBackOff } from "./back-off.ts";

export interface RefreshStatus {
  /** Time since the last success in milliseconds; null before the first. */
  readonly ageMs: number | null;
  /** Failures since the last success. */
  readonly failures: number;
}

export interface Refresh {
  start(): void;
  stop(): void;
  /** Does it as soon as `gapMs` have passed since it was last begun. */
  hasten(gapMs: number): void;
  status(): RefreshStatus;
}

export interface RefreshDeps {
  readonly clock: Clock;
  readonly backOff: BackOffOptions;
  /** Does it once; answers when to do it again, in milliseconds. */
  readonly act: () => Promise<number>;
  /** Told of each failure, with how many there were in a row. */
  readonly onFailure: (error: unknown, failures: number) => void;
}

export function createRefresh({ clock, backOff, act, onFailure }: RefreshDeps): Refresh {
  const waits = createBackOff(backOff);
  let timer: Timer | null = null;
  let running = false;
  let failures = 0;
  let successNs: number | null = null;
  let begunNs = 0;
  /** When the next one is due; null while one is in hand. */
  let dueNs: number | null = null;
  /** What is in hand was begun before somebody wanted a newer one. */
  let hastenedMs: number | null = null;

  async function once(): Promise<number> {
    try {
      const waitMs = await act();
      failures = 0;
      successNs = clock.nowNs();
      waits.reset();
      return waitMs;
    } catch (error) {
      failures += 1;
      if (running) onFailure(error, failures);
      return waits.next();
    }
  }

  function run(): void {
    begunNs = clock.nowNs();
    dueNs = null;
    hastenedMs = null;
    void once().then((waitMs) => {
      if (!running) return;
      arm(waitMs);
      if (hastenedMs !== null) hasten(hastenedMs);
    });
  }

  function arm(waitMs: number): void {
    dueNs = clock.nowNs() + waitMs * NS_PER_MS;
    timer = clock.after(waitMs, run);
  }

  function hasten(gapMs: number): void {
    if (!running) return;
    if (dueNs === null) {
      hastenedMs = gapMs;
      return;
    }
    const waitMs = Math.max(0, gapMs - (clock.nowNs() - begunNs) / NS_PER_MS);
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
    hasten,
    status() {
      const ageMs = successNs === null ? null : (clock.nowNs() - successNs) / NS_PER_MS;
      return { ageMs, failures };
    },
  };
}
