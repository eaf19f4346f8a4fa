/** Waiting for real input and output: a condition is asked again and again, up to a deadline. */

import { systemClock } from "../../src/core/clock.ts";
import type { FakeClock } from "./fake-clock.ts";

const POLL_MS = 2;

/** Waits until `condition` holds; fails after `deadlineMs`, naming what was waited for. */
export async function until(
  what: string,
  condition: () => boolean,
  deadlineMs = 60_000,
): Promise<void> {
  const endNs = systemClock.nowNs() + deadlineMs * 1e6;
  while (!condition()) {
    if (systemClock.nowNs() > endNs) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/**
 * Moves a clock on by itself, at most as fast as time goes; answers what ends that. Where this
 * process stands still for a while the clock does too, so everything that lives by it sees all its
 * moments, in their order.
 */
export function pace(clock: FakeClock): () => void {
  return everyMoment(() => clock.advance(POLL_MS));
}

/** Calls `act` every few milliseconds; answers what ends that. */
export function everyMoment(act: () => void): () => void {
  const timer = setInterval(act, POLL_MS);
  return () => clearInterval(timer);
}
