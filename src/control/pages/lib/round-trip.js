/**
 * The round trip from this browser to a region: the best of several fetches of its `/ping`, because
 * the first one includes the connection setup and each may be delayed.
 */

import { after, monotonicMs } from "./clock.js";

const TRIES = 6;
const PATIENCE_MS = 3000;

/**
 * @param {string} url of the region
 * @param {AbortSignal} signal
 * @param {(bestMs: number) => void} onBetter called after each attempt
 * @returns {Promise<number | null>} milliseconds; null when the region does not respond
 */
export async function roundTrip(url, signal, onBetter) {
  /** @type {number | null} */
  let best = null;
  for (let number = 0; number < TRIES; number += 1) {
    const ms = await one(`${url}/ping`, signal);
    if (signal.aborted) return null;
    if (ms === null) return best;
    // The first one includes the connection setup: it counts only if no other succeeds.
    if (number === 1) best = ms;
    else best = best === null ? ms : Math.min(best, ms);
    onBetter(best);
  }
  return best;
}

/** @param {string} url @param {AbortSignal} signal */
async function one(url, signal) {
  const patience = new AbortController();
  const stop = () => patience.abort();
  signal.addEventListener("abort", stop, { once: true });
  const cancel = after(PATIENCE_MS, stop, signal);
  const startMs = monotonicMs();
  try {
    const response = await fetch(url, { cache: "no-store", signal: patience.signal });
    await response.text();
    return response.ok ? monotonicMs() - startMs : null;
  } catch {
    // Unreachable and too slow are shown alike.
    return null;
  } finally {
    cancel();
    signal.removeEventListener("abort", stop);
  }
}
