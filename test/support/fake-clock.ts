/**
 * A clock that moves only when advanced. Timers fire in time order while `advance` runs, each at
 * the time it was set for.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../src/core/clock.ts";

interface Pending {
  readonly atNs: number;
  readonly order: number;
  readonly act: () => void;
  readonly periodNs: number | null;
}

export interface FakeClock extends Clock {
  /** Moves time forward by `ms` (fractions allowed) and fires what falls due on the way. */
  advance(ms: number): void;
  /** Timers that have not fired and were not cancelled. */
  readonly pending: number;
}

/** Starts at `startNs` monotonic and `startUnixMs` wall time. */
export function createFakeClock(
  startNs = 1_000_000_000,
  startUnixMs = 1_790_000_000_000,
): FakeClock {
  let now = startNs;
  let order = 0;
  const timers = new Set<Pending>();

  function schedule(delayNs: number, act: () => void, periodNs: number | null): Timer {
    order += 1;
    const timer: Pending = { atNs: now + delayNs, order, act, periodNs };
    let current = timer;
    const rearm = (): void => {
      if (periodNs === null) return;
      order += 1;
      current = { ...timer, atNs: current.atNs + periodNs, order, act: fire };
      timers.add(current);
    };
    const fire = (): void => {
      rearm();
      act();
    };
    current = { ...timer, act: fire };
    timers.add(current);
    return { cancel: () => void timers.delete(current) };
  }

  function nextDue(untilNs: number): Pending | null {
    let best: Pending | null = null;
    for (const timer of timers) {
      if (timer.atNs > untilNs) continue;
      if (best === null || timer.atNs < best.atNs) best = timer;
      else if (timer.atNs === best.atNs && timer.order < best.order) best = timer;
    }
    return best;
  }

  return {
    nowNs: () => now,
    unixMs: () => startUnixMs + (now - startNs) / NS_PER_MS,
    after: (delayMs, act) => schedule(delayMs * NS_PER_MS, act, null),
    every: (periodMs, act) => schedule(periodMs * NS_PER_MS, act, periodMs * NS_PER_MS),
    advance(ms) {
      const untilNs = now + ms * NS_PER_MS;
      for (let due = nextDue(untilNs); due !== null; due = nextDue(untilNs)) {
        timers.delete(due);
        now = due.atNs;
        due.act();
      }
      now = untilNs;
    },
    get pending() {
      return timers.size;
    },
  };
}
