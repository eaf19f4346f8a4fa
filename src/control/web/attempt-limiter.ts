/**
 * Limits attempts: one token bucket per limit and caller, with time from the clock. A rejected
 * attempt costs nothing. Memory is bounded: above the limit the least recently used bucket is
 * dropped, which can only favour the caller that waited longest.
 */

import { isIPv6 } from "node:net";
import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import { CONTROL_LIMITED_CALLERS_MAX } from "../limits.ts";
import type { LimitName } from "./route.ts";

interface Limit {
  /** Attempts in a burst. */
  readonly burst: number;
  /** One more attempt is allowed after each interval. */
  readonly everyMs: number;
}

const PER_MINUTE = (count: number): Limit => ({ burst: count, everyMs: 60_000 / count });

export const LIMITS: Readonly<Record<LimitName | "request", Limit>> = {
  /** Logins started or finished from one address. */
  login: PER_MINUTE(20),
  /** Keys revealed by one account and from one address. */
  reveal: PER_MINUTE(10),
  /** Keys claimed by their text, by one account and from one address. */
  link: PER_MINUTE(5),
  /** Keys, tokens and settings created or changed by one account. */
  change: PER_MINUTE(60),
  /** All API requests of one address. */
  request: { burst: 200, everyMs: 20 },
};

/**
 * The caller of an address: a host for IPv4; a /64 network for IPv6, where one subscriber controls
 * all its addresses.
 */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return `address ${mapped ?? address}`;
  const [head = "", tail] = address.replace(/%.*$/, "").toLowerCase().split("::", 2);
  const groups = head === "" ? [] : head.split(":");
  const rest = tail === undefined || tail === "" ? [] : tail.split(":");
  // An IPv4 suffix stands for two groups, in the half that is ignored.
  const dotted = address.includes(".") ? 1 : 0;
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - rest.length - dotted);
  const all = [...groups, ...Array.from({ length: zeros }, () => "0"), ...rest];
  const bits = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `network ${bits.join(":")}`;
}

export interface AttemptLimiter {
  readonly counters: { limited: number; evicted: number };
  /**
   * Milliseconds to wait; 0 when the attempt is allowed, which is then charged to all the callers.
   */
  take(limit: keyof typeof LIMITS, callers: readonly string[]): number;
}

export function createAttemptLimiter(
  clock: Clock,
  keptMax = CONTROL_LIMITED_CALLERS_MAX,
): AttemptLimiter {
  const counters = { limited: 0, evicted: 0 };
  /** When each bucket is full again, by limit and caller; least recently used first. */
  const fullAtMs = new Map<string, number>();
  return {
    counters,
    take(limit, callers) {
      const { burst, everyMs } = LIMITS[limit];
      const nowMs = clock.nowNs() / NS_PER_MS;
      const names = callers.map((caller) => `${limit} ${caller}`);
      const waits = names.map((name) =>
        Math.max(0, (fullAtMs.get(name) ?? nowMs) - nowMs - (burst - 1) * everyMs),
      );
      const waitMs = Math.max(0, ...waits);
      if (waitMs > 0) {
        counters.limited += 1;
        return waitMs;
      }
      for (const name of names) {
        const full = Math.max(fullAtMs.get(name) ?? nowMs, nowMs) + everyMs;
        fullAtMs.delete(name);
        fullAtMs.set(name, full);
      }
      for (const oldest of fullAtMs.keys()) {
        if (fullAtMs.size <= keptMax) break;
        fullAtMs.delete(oldest);
        counters.evicted += 1;
      }
      return 0;
    },
  };
}
