/**
 * Waiting for real input and output: a condition is polled up to a deadline.
 */

import { systemClock } from "../../src/core/clock.ts";
import type { FakeClock } from "./fake-clock.ts";

const POLL_MS = 2;

/** Waits until `condition` holds; fails after `deadlineMs`, naming the condition. */
export async function until(
  what: string,
  condition: () => boolean,
  deadlineMs = 60_000,
): Promise<void> {
  const endNs = systemClock.nowNs() + deadlineMs * 1e6;
  while (!condition()) {
    if (systemClock.nowNs() > endNs) throw new Error(`timed out waiting for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/**
 * Advances a fake clock automatically, at most in real time; returns a function that stops it. If
 * this process pauses the clock does too, so every timer fires in order.
 */
export function pace(clock: FakeClock): () => void {
  return everyMoment(() => clock.advance(POLL_MS));
}

/** Calls `act` every few milliseconds; returns a function that stops it. */
export function everyMoment(act: () => void): () => void {
  const timer = setInterval(act, POLL_MS);
  return () => clearInterval(timer);
}
