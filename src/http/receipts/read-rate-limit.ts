/**
 * Rate limit of an account's receipt reads: the same rate as its plan's submissions, in a separate
 * bucket, so that polling neither uses up submissions nor is free. All keys of an account share it.
 */

import { NS_PER_MS } from "../../core/clock.ts";
import type { Rejection } from "../../core/errors.ts";
import { LIMITED_ACCOUNTS_MAX } from "../../core/limits.ts";
import type { Principal, RatePlan } from "../../limits/access-control.ts";
import { intervalNs } from "../../limits/gcra.ts";
import { LocalLimitStates } from "../../limits/local-state.ts";
import { withFastProperties } from "../../runtime/fast-object.ts";

export interface ReadLimit {
  /** Charges one request: 0 when it is allowed, else the nanoseconds to wait. */
  charge(principal: Principal, nowNs: number): number;
  readonly counters: {
    /** Requests allowed and rejected. */
    allowed: number;
    limited: number;
    /** States evicted early because the table was full. */
    readonly evicted: number;
  };
}

export function createReadLimit(accountsMax = LIMITED_ACCOUNTS_MAX): ReadLimit {
  const states = new LocalLimitStates(accountsMax);
  const counters = withFastProperties({
    allowed: 0,
    limited: 0,
    get evicted() {
      return states.evicted;
    },
  });

  return {
    counters,
    charge({ account, plan }, nowNs) {
      const interval = intervalNs(plan.ratePerSecond);
      const state = states.of(account);
      const wait = states.waitNs(state, plan, nowNs);
      if (wait > 0) {
        counters.limited += 1;
        return wait;
      }
      states.charge(account, state, interval, nowNs);
      counters.allowed += 1;
      return 0;
    },
  };
}

/** The rejection for an account that reads too often. */
export function readLimitRejection(plan: RatePlan, wait: number): Rejection {
  const { name, ratePerSecond, burst } = plan;
  const retryAfterMs = Math.ceil(wait / NS_PER_MS);
  return {
    reason: "rate_limited",
    message:
      `plan ${name} lets receipts be read ${ratePerSecond} times a second with a burst of ` +
      `${burst}; the next time is in ${retryAfterMs} ms, and /api/v1/receipts streams them`,
    data: { plan: name, ratePerSecond, burst, retryAfterMs },
  };
}
