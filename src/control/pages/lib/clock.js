/**
 * Time in the browser: the one file that asks for it and waits for it, so that every timer has an
 * end. A wait given a signal stops with it.
 */

/** Milliseconds since the Unix epoch. */
export function now() {
  return Date.now();
}

/** Milliseconds on a clock that only moves forward. */
export function monotonicMs() {
  return performance.now();
}

/**
 * Calls `act` after so many milliseconds, unless the signal aborts before.
 * @param {number} ms
 * @param {() => void} act
 * @param {AbortSignal} [signal]
 * @returns {() => void} calls it off
 */
export function after(ms, act, signal) {
  if (signal?.aborted) return () => {};
  const timer = setTimeout(act, ms);
  const cancel = () => clearTimeout(timer);
  signal?.addEventListener("abort", cancel, { once: true });
  return cancel;
}

/**
 * Calls `act` every so many milliseconds until the signal aborts.
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
