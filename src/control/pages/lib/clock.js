/**
 * Time in the browser: the only file that reads the clock and sets timers, so that every timer is
 * ended. A wait that is given a signal ends with it.
 */

/** Milliseconds since the Unix epoch. */
export function now() {
  return Date.now();
}

/** Milliseconds of a monotonic clock. */
export function monotonicMs() {
  return performance.now();
}

/**
 * Calls `act` after `ms` milliseconds, unless the signal aborts before.
 * @param {number} ms
 * @param {() => void} act
 * @param {AbortSignal} [signal]
 * @returns {() => void} cancels it
 */
export function after(ms, act, signal) {
  if (signal?.aborted) return () => {};
  const timer = setTimeout(act, ms);
  const cancel = () => clearTimeout(timer);
  signal?.addEventListener("abort", cancel, { once: true });
  return cancel;
}

/**
 * Calls `act` every `ms` milliseconds until the signal aborts.
 * @param {number} ms
 * @param {() => void} act
 * @param {AbortSignal} signal
 * @returns {() => void} ends it sooner
 */
export function every(ms, act, signal) {
  if (signal.aborted) return () => {};
  const timer = setInterval(act, ms);
  const cancel = () => clearInterval(timer);
  signal.addEventListener("abort", cancel, { once: true });
  return cancel;
}
