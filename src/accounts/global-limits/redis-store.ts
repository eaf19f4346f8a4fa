/**
 * The store through which edges exchange accepted requests: Valkey or Redis, using `iovalkey`.
 *
 * For each account the store keeps how far its bucket is below full and when that was, by the
 * store's clock; a script continues from there, so edges need no common clock. If the store's clock
 * is set back, elapsed time counts as 0: no client gains, and none waits for the clock to catch up.
 * No call waits: while the store is unreachable every call fails immediately.
 *
 * Note: a stalled store later executes the requests queued before the stall. An age reported that
 * late is wrong, and the account would lose what was refilled meanwhile. Each request therefore
 * carries an expiry in store time, estimated from the last heartbeat.
 */

import { Redis } from "iovalkey";
import { type Clock, NS_PER_MS, NS_PER_US } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { LIMIT_STORE_MS_MAX } from "../limits.ts";
import type { Spent } from "./bucket.ts";
import type { LimitStore } from "./sync.ts";

export interface LimitStoreDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/** A store that can also be looked at without taking part. */
export interface RedisLimitStore extends LimitStore {
  /** Edges that are alive, or ended lately; changes nothing. */
  edgeCount(): Promise<number>;
  /** Why the last connection failed; null: none did, or the store answers. */
  connectionError(): Error | null;
}

/** `url` is redis:// or rediss:// (TLS), with user and password if the store requires them. */
export function createLimitStore({ clock, log }: LimitStoreDeps, url: string): RedisLimitStore {
  /** The address leads, after a failover, to the primary of before; it is tried again, unlogged. */
  let isReplica = false;
  const client = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: LIMIT_STORE_MS_MAX,
    commandTimeout: LIMIT_STORE_MS_MAX,
    reconnectOnError({ message }) {
      const isRefused = message.includes("READONLY");
      isReplica ||= isRefused;
      return isRefused;
    },
    retryStrategy: (attempt) => Math.min(100 * 2 ** Math.min(attempt, 10), RETRY_MS_MAX),
  });
  let wasUp = false;
  let connectionError: Error | null = null;
  /**
   * Upper bound of the store clock's lead over this clock; null until the store has returned its
   * time.
   */
  let aheadMs: number | null = null;

  const nowMs = (): number => Math.floor(clock.nowNs() / NS_PER_MS);

  /** Expiry of a request sent now, by the store's clock; 0: none. */
  const lastMs = (): number => (aheadMs === null ? 0 : nowMs() + aheadMs + LIMIT_STORE_MS_MAX);

  function up(): void {
    wasUp = true;
    log.info({}, "the store of shared limits answers");
  }

  client.on("ready", () => {
    connectionError = null;
    if (!isReplica) up();
  });
  client.on("close", () => {
    if (wasUp) log.warn({}, "the store of shared limits is gone; edges keep to their fair share");
    wasUp = false;
  });
  // `close` already reports this; without a listener the error would end the process.
  client.on("error", (error: Error) => {
    connectionError = error;
  });
  return {
    start() {
      // An unreachable store does not fail the start; the client keeps retrying.
      client.connect().catch(() => undefined);
    },
    async spend(spent) {
      const pipeline = client.pipeline();
      const last = lastMs();
      for (const one of spent)
        pipeline.eval(SPEND, 1, PREFIX + one.account, ...spendArguments(one), last);
      const responses = (await pipeline.exec()) ?? [];
      return spent.map((_, index) => {
        const [error, value] = responses[index] ?? [new Error("no answer"), null];
        if (error !== null) throw error;
        return Number(value);
      });
    },
    async heartbeat(edge, aliveMs) {
      const askedMs = nowMs();
      const [count, timeMs] = numbersOf(
        await client.eval(HEARTBEAT, 1, `${PREFIX}edges`, edge, aliveMs),
      );
      aheadMs = timeMs - askedMs;
      if (isReplica) up();
      isReplica = false;
      return count;
    },
    edgeCount: () => client.zcard(`${PREFIX}edges`),
    connectionError: () => connectionError,
    stop() {
      // No loss to report.
      wasUp = false;
      client.disconnect();
    },
  };
}

function spendArguments({ count, intervalNs, ageNs }: Spent): readonly [number, number, number] {
  return [count, intervalNs / NS_PER_US, Math.floor(ageNs / NS_PER_US)];
}

/** Parses a response of two numbers. */
function numbersOf(response: unknown): readonly [number, number] {
  const [first, second] = Array.isArray(response) ? response : [];
  return [Number(first), Number(second)];
}

const PREFIX = "touchdown:bucket:";
const RETRY_MS_MAX = 5_000;

/**
 * KEYS: account; ARGV: requests, microseconds per request (a fraction for fast plans), microseconds
 * since the first of them, expiry in milliseconds. Returns how many microseconds the bucket is
 * below full.
 */
const SPEND = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if tonumber(ARGV[4]) > 0 and now > ARGV[4] * 1000 then
  return redis.error_reply('LATE the store was asked too long ago')
end
local last = redis.call('HMGET', KEYS[1], 'behind', 'at')
local behind = -ARGV[3]
if last[1] then
  local passed = math.max(0, now - last[2])
  behind = math.max(behind, last[1] - passed)
end
behind = behind + ARGV[1] * ARGV[2]
redis.call('HSET', KEYS[1], 'behind', string.format('%.0f', behind),
  'at', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(math.max(0, behind) / 1000) + 1000)
return string.format('%.0f', math.max(0, behind))`;

/**
 * KEYS: the edges; ARGV: this edge, milliseconds until a silent edge is removed. Returns the edge
 * count and the time in milliseconds. A heartbeat with a future time predates a clock set back: it
 * is redated to now.
 */
const HEARTBEAT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
for _, edge in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')) do
  redis.call('ZADD', KEYS[1], now, edge)
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2] * 2)
return {redis.call('ZCARD', KEYS[1]), now}`;
