/**
 * Time, as the only thing in the process that reads it.
 *
 * Everything that waits or measures takes a `Clock`, so that a test can move time by hand. `nowNs`
 * is monotonic and the same for all threads and processes of one machine, so stamps of different
 * threads can be subtracted; it stays exact as a double for 104 days of uptime and is a few
 * nanoseconds coarse after that.
 */

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
  /** Calls `act` once, `delayMs` from now. Does not keep the process alive. */
  after(delayMs: number, act: () => void): Timer;
  /** Calls `act` every `periodMs`, first after one period. Does not keep the process alive. */
  every(periodMs: number, act: () => void): Timer;
}

export const NS_PER_US = 1_000;
export const NS_PER_MS = 1_000_000;
export const NS_PER_S = 1_000_000_000;

export const systemClock: Clock = {
  nowNs: () => Number(process.hrtime.bigint()),
  unixMs: () => Date.now(),
  after(delayMs, act) {
    const handle = setTimeout(act, delayMs).unref();
    return { cancel: () => clearTimeout(handle) };
  },
  every(periodMs, act) {
    const handle = setInterval(act, periodMs).unref();
    return { cancel: () => clearInterval(handle) };
  },
};

/** Keeps the process alive until cancelled: the clock's own timers do not. */
export function holdProcess(): Timer {
  const handle = setInterval(() => {}, 2 ** 31 - 1);
  return { cancel: () => clearInterval(handle) };
}
