/**
 * Where edges tell each other what they let through: Valkey or Redis, by the client `iovalkey`.
 *
 * For each account there is one number, the time at which its bucket is full again, by the store's
 * own clock; a script adds to it and answers how far ahead it is, so edges need no common clock.
 * Nothing waits here: while the store is away every call fails at once.
 */

import { Redis } from "iovalkey";
import { LIMIT_STORE_MS_MAX } from "../core/account-limits.ts";
import { NS_PER_US } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { LimitStore, Spent } from "./shared-limits.ts";

export interface LimitStoreDeps {
  readonly log: Log;
}

/** `url` is redis://, rediss:// (TLS), with user and password where the store wants them. */
export function createLimitStore({ log }: LimitStoreDeps, url: string): LimitStore {
  const client = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: LIMIT_STORE_MS_MAX,
    commandTimeout: LIMIT_STORE_MS_MAX,
    retryStrategy: (attempt) => Math.min(100 * 2 ** Math.min(attempt, 10), RETRY_MS_MAX),
  });
  let wasUp = false;
  client.on("ready", () => {
    wasUp = true;
    log.info({}, "the store of shared limits answers");
  });
  client.on("close", () => {
    if (wasUp) log.warn({}, "the store of shared limits is gone; edges keep to their fair share");
    wasUp = false;
  });
  // Told by `close` already; without a listener it would end the process.
  client.on("error", () => undefined);
  return {
    start() {
      // A store that is away is no fault of the start; the client goes on trying.
      client.connect().catch(() => undefined);
    },
    async spend(spent) {
      const pipeline = client.pipeline();
      for (const one of spent) pipeline.eval(SPEND, 1, PREFIX + one.account, ...figures(one));
      const answers = (await pipeline.exec()) ?? [];
      return spent.map((_, index) => {
        const [error, value] = answers[index] ?? [new Error("no answer"), null];
        if (error !== null) throw error;
        return Number(value);
      });
    },
    async beat(edge, aliveMs) {
      return Number(await client.eval(BEAT, 1, `${PREFIX}edges`, edge, aliveMs));
    },
    stop() {
      client.disconnect();
    },
  };
}

function figures({ count, intervalNs, ageNs }: Spent): readonly [number, number, number] {
  return [count, Math.ceil(intervalNs / NS_PER_US), Math.floor(ageNs / NS_PER_US)];
}

const PREFIX = "touchdown:limit:";
const RETRY_MS_MAX = 5_000;

/**
 * KEYS: account; ARGV: requests, microseconds that one costs, microseconds since the first of them.
 * Answers by how many microseconds the bucket is behind full.
 */
const SPEND = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = tonumber(redis.call('GET', KEYS[1]) or '0')
if full < now - ARGV[3] then full = now - ARGV[3] end
full = full + ARGV[1] * ARGV[2]
local ahead = math.max(0, full - now)
redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil(ahead / 1000) + 1000)
return string.format('%.0f', ahead)`;

/** KEYS: the edges; ARGV: this one, milliseconds until a silent one is forgotten. Their number. */
const BEAT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2] * 2)
return redis.call('ZCARD', KEYS[1])`;
