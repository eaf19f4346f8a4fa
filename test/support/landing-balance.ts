/**
 * The invariant of every edge: each accepted transaction has ended once, or is in flight.
 */

import { expect } from "vitest";
import type { Landing } from "../../src/landing/landing.ts";
import { type Family, seriesValue } from "./prometheus.ts";

/** Fails unless accepted = landed + expired + dropped + in flight, and reasons add up. */
export function expectBalance(landing: Pick<Landing, "counters" | "inFlight">): void {
  const { accepted, landed, expired, dropped, reasons } = landing.counters;
  expect({ accepted }).toEqual({ accepted: landed + expired + dropped + landing.inFlight });
  const reasoned = Object.values(reasons).reduce((sum, count) => sum + count, 0);
  expect({ reasoned }).toEqual({ reasoned: expired + dropped });
}

export interface Ends {
  readonly accepted: number;
  readonly landed: number;
  readonly expired: number;
  readonly dropped: number;
  readonly inFlight: number;
}

/** The same for an edge's metrics; returns the counters. */
export function expectScrapedBalance(families: ReadonlyMap<string, Family>): Ends {
  const ended = (end: string): number =>
    seriesValue(families, "touchdown_transactions_total", { outcome: end });
  const ends: Ends = {
    accepted: seriesValue(families, "touchdown_transactions_accepted_total"),
    landed: ended("landed"),
    expired: ended("expired"),
    dropped: ended("dropped"),
    inFlight: seriesValue(families, "touchdown_transactions_in_flight"),
  };
  const { landed, expired, dropped, inFlight } = ends;
  expect(ends).toMatchObject({ accepted: landed + expired + dropped + inFlight });
  return ends;
}
