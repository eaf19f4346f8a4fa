/**
 * How often an account may read its receipts: as often as its plan lets it send, in a bucket of its
 * own, so that polling neither eats what may be sent nor is free. The limit is the account's, over
 * all its keys.
 */

import { NS_PER_MS } from "../core/clock.ts";
import type { Refusal } from "../core/errors.ts";
import { LIMITED_ACCOUNTS_MAX } from "../core/limits.ts";
import type { KeyOwner, RatePlan } from "./gate.ts";
import { charged, intervalNs, waitNs } from "./gcra.ts";

export interface ReadLimit {
  /** Charges one request: 0 when it is let through, else the nanoseconds to wait. */
  charge(owner: KeyOwner, nowNs: number): number;
  readonly counters: {
    /** Requests let through, and refused. */
    admitted: number;
    limited: number;
    /** Limits forgotten before their time, for want of room. */
    evicted: number;
  };
}

export function createReadLimit(accountsMax = LIMITED_ACCOUNTS_MAX): ReadLimit {
  /** When each account's bucket is full again. */
  const fullAt = new Map<string, number>();
  const counters = { admitted: 0, limited: 0, evicted: 0 };
  let sweepAt = Math.min(SWEEP_FIRST_AT, accountsMax);

  /** Forgets buckets that are full; the first that is not where none is. */
  function sweep(nowNs: number): void {
    for (const [account, fullNs] of fullAt) {
      if (fullNs <= nowNs) fullAt.delete(account);
    }
    if (fullAt.size >= accountsMax) {
      for (const account of fullAt.keys()) {
        fullAt.delete(account);
        counters.evicted += 1;
        break;
      }
    }
    sweepAt = Math.min(Math.max(SWEEP_FIRST_AT, fullAt.size * 2), accountsMax);
  }

  return {
    counters,
    charge({ account, plan }, nowNs) {
      const interval = intervalNs(plan.ratePerSecond);
      const fullNs = fullAt.get(account);
      const wait = waitNs(fullNs ?? 0, nowNs, interval, plan.burst);
      if (wait > 0) {
        counters.limited += 1;
        return wait;
      }
      if (fullNs === undefined && fullAt.size >= sweepAt) sweep(nowNs);
      fullAt.set(account, charged(fullNs ?? 0, nowNs, interval));
      counters.admitted += 1;
      return 0;
    },
  };
}

/** What a client is told whose account reads too often. */
export function readLimitRefusal(plan: RatePlan, wait: number): Refusal {
  const { name, ratePerSecond, burst } = plan;
  const retryAfterMs = Math.ceil(wait / NS_PER_MS);
  return {
    reason: "rate_limited",
    sentence:
      `plan ${name} lets receipts be read ${ratePerSecond} times a second with a burst of ` +
      `${burst}; the next time is in ${retryAfterMs} ms, and /api/v1/receipts streams them`,
    data: { plan: name, ratePerSecond, burst, retryAfterMs },
  };
}

/** Below this many accounts nothing is ever forgotten. */
const SWEEP_FIRST_AT = 1024;
