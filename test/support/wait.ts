/** Waiting for real input and output: a condition is asked again and again, up to a deadline. */

import { systemClock } from "../../src/core/clock.ts";

const POLL_MS = 2;

/** Waits until `condition` holds; fails after `deadlineMs`, naming what was waited for. */
export async function until(
  what: string,
  condition: () => boolean,
  deadlineMs = 30_000,
): Promise<void> {
  const endNs = systemClock.nowNs() + deadlineMs * 1e6;
  while (!condition()) {
    if (systemClock.nowNs() > endNs) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Calls `act` every few milliseconds; answers what ends that. */
export function everyMoment(act: () => void): () => void {
  const timer = setInterval(act, POLL_MS);
  return () => clearInterval(timer);
}
