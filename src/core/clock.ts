/**
 * The process's only access to time.
 *
 * Code that waits or measures takes a `Clock`, so that tests can set the time. `nowNs` is monotonic
 * and common to all threads and processes of one machine, so stamps of different threads can be
 * subtracted. It is exact as a double for 104 days of uptime and a few nanoseconds coarse after
 * that. Two threads may differ by the fraction of a microsecond that comparing two clocks takes.
 */

// Imported by name: the global `performance` is looked up through a getter at each use.
import { performance } from "node:perf_hooks";

/** A timer that has not fired yet. */
export interface Timer {
  /** Stops the timer; no effect after it has fired or was cancelled. */
  cancel(): void;
}

export interface Clock {
  /** Monotonic nanoseconds with an arbitrary origin. */
  nowNs(): number;
  /** Wall-clock milliseconds since the Unix epoch. */
  unixMs(): number;
  /**
   * Calls `act` once, `delayMs` from now; 0 means the next turn of the event loop. The timer does
   * not keep the process alive.
   */
  after(delayMs: number, act: () => void): Timer;
  /**
   * Calls `act` every `periodMs`, first after one period. The timer does not keep the process
   * alive.
   */
  every(periodMs: number, act: () => void): Timer;
}

export const NS_PER_US = 1_000;
export const NS_PER_MS = 1_000_000;
export const NS_PER_S = 1_000_000_000;
const ORIGIN_ROUNDS = 64;

/**
 * The origin of `performance.now()` on this thread. `performance.now()` takes two thirds of the
 * time of `hrtime` and allocates no big integer; each transaction needs eight readings. Of several
 * comparisons the shortest is the most exact.
 */
const originNs = ((): number => {
  let [bestNs, origin] = [Number.POSITIVE_INFINITY, 0];
  for (let round = 0; round < ORIGIN_ROUNDS; round += 1) {
    const before = process.hrtime.bigint();
    const sinceNs = performance.now() * NS_PER_MS;
    const tookNs = Number(process.hrtime.bigint() - before);
    if (tookNs < bestNs) [bestNs, origin] = [tookNs, Number(before) + tookNs / 2 - sinceNs];
  }
  return origin;
})();

export const systemClock: Clock = {
  nowNs: () => Math.round(originNs + performance.now() * NS_PER_MS),
  unixMs: () => Date.now(),
  after(delayMs, act) {
    if (delayMs === 0) return nextTurn(act);
    const handle = setTimeout(act, delayMs).unref();
    return { cancel: () => clearTimeout(handle) };
  },
  every(periodMs, act) {
    const handle = setInterval(act, periodMs).unref();
    return { cancel: () => clearInterval(handle) };
  },
};

/** Uses `setImmediate`, because a Node timer takes at least one millisecond. */
function nextTurn(act: () => void): Timer {
  const handle = setImmediate(act);
  return { cancel: () => clearImmediate(handle) };
}

/** Resolves after that time; does not keep the process alive. */
export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

/** Checks every `periodMs` until `isDone`; false when the time is up. */
export async function until(
  clock: Clock,
  { timeoutMs, periodMs }: { readonly timeoutMs: number; readonly periodMs: number },
  isDone: () => boolean | Promise<boolean>,
): Promise<boolean> {
  const untilNs = clock.nowNs() + timeoutMs * NS_PER_MS;
  while (!(await isDone())) {
    if (clock.nowNs() >= untilNs) return false;
    await sleep(clock, periodMs);
  }
  return true;
}

/** Runs `act` with a signal that aborts after that time. */
export async function withTimeout<T>(
  clock: Clock,
  ms: number,
  act: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const timer = clock.after(ms, () => abort.abort());
  try {
    return await act(abort.signal);
  } finally {
    timer.cancel();
  }
}

/** Keeps the process alive until cancelled; the clock's own timers do not. */
export function holdProcess(): Timer {
  const handle = setInterval(() => {}, 2 ** 31 - 1);
  return { cancel: () => clearInterval(handle) };
}
