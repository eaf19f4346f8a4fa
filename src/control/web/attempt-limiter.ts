/**
 * How often something may be tried: a token bucket a limit and caller, with time from the clock.
 * A refused try costs nothing more. Memory is bounded: above the bound the bucket used longest ago
 * is forgotten, which can only be to the favour of somebody who waited longest.
 */

import { isIPv6 } from "node:net";
import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import { CONTROL_LIMITED_CALLERS_MAX } from "../limits.ts";
import type { LimitName } from "./route.ts";

interface Limit {
  /** Tries at once. */
  readonly burst: number;
  /** One more is allowed each time this passes. */
  readonly everyMs: number;
}

const PER_MINUTE = (count: number): Limit => ({ burst: count, everyMs: 60_000 / count });

export const LIMITS: Readonly<Record<LimitName | "request", Limit>> = {
  /** Logins that are begun or come back, from one address. */
  login: PER_MINUTE(20),
  /** Keys that are revealed, by one account and from one address. */
  reveal: PER_MINUTE(10),
  /** Keys whose possession is claimed, by one account and from one address. */
  link: PER_MINUTE(5),
  /** Keys, tokens and settings that are made or changed by one account. */
  change: PER_MINUTE(60),
  /** Everything that one address asks of the API. */
  request: { burst: 200, everyMs: 20 },
};

/**
 * Who is one caller by their address: a host with IPv4, a network of 64 bits with IPv6, where one
 * subscriber has as many addresses as they like.
 */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return `address ${mapped ?? address}`;
  const [head = "", tail] = address.replace(/%.*$/, "").toLowerCase().split("::", 2);
  const groups = head === "" ? [] : head.split(":");
  const rest = tail === undefined || tail === "" ? [] : tail.split(":");
  // An IPv4 part stands for two groups, in the half that does not count.
  const dotted = address.includes(".") ? 1 : 0;
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - rest.length - dotted);
  const all = [...groups, ...Array.from({ length: zeros }, () => "0"), ...rest];
  const bits = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `network ${bits.join(":")}`;
}

export interface AttemptLimiter {
  readonly counters: { refused: number; forgotten: number };
  /** Milliseconds to wait; 0 when the try is let through, which is charged to all the callers. */
  take(limit: keyof typeof LIMITS, callers: readonly string[]): number;
}

export function createAttemptLimiter(
  clock: Clock,
  keptMax = CONTROL_LIMITED_CALLERS_MAX,
): AttemptLimiter {
  const counters = { refused: 0, forgotten: 0 };
  /** When each bucket is full again, by limit and caller; the one used longest ago is first. */
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
        counters.refused += 1;
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
        counters.forgotten += 1;
      }
      return 0;
    },
  };
}
