/**
 * Time, as the only thing in the process that reads it.
 *
 * Everything that waits or measures takes a `Clock`, so that a test can move time by hand. `nowNs`
 * is monotonic and the same for all threads and processes of one machine, so stamps of different
 * threads can be subtracted; it stays exact as a double for 104 days of uptime and is a few
 * nanoseconds coarse after that. Threads may be apart by the fraction of a microsecond that it
 * takes to compare two clocks.
 */

// By name, because the global one is looked up and got through a getter at each use.
import { performance } from "node:perf_hooks";

/** A timer that has not fired yet. */
export interface Timer {
  /** Stops the timer; nothing happens when it has fired or was cancelled already. */
  cancel(): void;
}

export interface Clock {
  /** Monotonic nanoseconds with an arbitrary origin. */
  nowNs(): number;
  /** Milliseconds since the Unix epoch, by the wall clock. */
  unixMs(): number;
  /**
   * Calls `act` once, `delayMs` from now; 0: in the next turn of the event loop. Does not keep the
   * process alive for longer than that.
   */
  after(delayMs: number, act: () => void): Timer;
  /** Calls `act` every `periodMs`, first after one period. Does not keep the process alive. */
  every(periodMs: number, act: () => void): Timer;
}

export const NS_PER_US = 1_000;
export const NS_PER_MS = 1_000_000;
export const NS_PER_S = 1_000_000_000;
const ORIGIN_ROUNDS = 64;

/**
 * What `performance.now()` counts from on this thread. It reads the clock of `hrtime` at two thirds
 * of the time, and leaves no big integer behind; a transaction's way has eight readings. The
 * shortest of several comparisons is the best one.
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

/** A timer of Node's takes a millisecond at least. */
function nextTurn(act: () => void): Timer {
  const handle = setImmediate(act);
  return { cancel: () => clearImmediate(handle) };
}

/** Keeps the process alive until cancelled: the clock's own timers do not. */
export function holdProcess(): Timer {
  const handle = setInterval(() => {}, 2 ** 31 - 1);
  return { cancel: () => clearInterval(handle) };
}
