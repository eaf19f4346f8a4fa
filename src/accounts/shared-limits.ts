/**
 * One limit for an account on all edges, without a round trip for any request.
 *
 * Each edge decides at once, from what it knows of the account's bucket. What it let through it
 * tells the store a few times a second, and learns how full the bucket is by everybody's requests.
 * So the limit holds in the long run to the letter; a burst at the same moment on several edges may
 * pass on each of them, and is paid back before anything more passes. While the store is away an
 * edge keeps to its fair share: the plan's rate and burst divided by the edges last known.
 *
 * Hot path: `waitNs` and `charge` are one look-up and a few additions.
 */

import { SHARED_ACCOUNTS_MAX, SHARED_ROUND_MAX } from "../core/account-limits.ts";
import type { Clock, Timer } from "../core/clock.ts";
import { NS_PER_S, NS_PER_US } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { Plan } from "./key.ts";

/** Requests of one account that were let through. */
export interface Spent {
  readonly account: string;
  readonly count: number;
  /** What one request costs at the plan's rate. */
  readonly intervalNs: number;
  /** How long ago the first of them was. */
  readonly ageNs: number;
}

/** Where edges tell each other. Every call may reject; none may take long. */
export interface LimitStore {
  start(): void;
  /** Adds what was spent; answers, for each, by how many microseconds the bucket is behind full. */
  spend(spent: readonly Spent[]): Promise<readonly number[]>;
  /** Tells that this edge lives; answers how many do. */
  beat(edge: string, aliveMs: number): Promise<number>;
  stop(): void;
}

export interface SharedLimitsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: LimitStore;
}

export interface SharedLimitsOptions {
  /** This edge's name, which no other has. */
  readonly edge: string;
  /** Edges to reckon with until the store has told their number. */
  readonly edgesAtFirst: number;
}

export interface SharedLimitsCounters {
  /** Rounds in which the store answered. */
  rounds: number;
  failures: number;
  /** Edges that were alive when the store last told. */
  edges: number;
  /** 1 while the store answers, else 0. */
  connected: number;
  /** Accounts whose bucket is known here now. */
  accounts: number;
  /** Accounts forgotten before their time, for want of room. */
  evicted: number;
}

export interface SharedLimits {
  /** How long the account has to wait now, in nanoseconds; 0: it may pass. Changes nothing. */
  waitNs(account: string, plan: Plan, nowNs: number): number;
  /** Counts one request that was let through. */
  charge(account: string, plan: Plan, nowNs: number): void;
  start(): void;
  /** Tells the store what it does not know yet, as far as it answers. */
  stop(): Promise<void>;
  readonly counters: Readonly<SharedLimitsCounters>;
}

interface Bucket {
  /** When it is full again, by this edge's clock. */
  fullNs: number;
  /** Let through and not yet told. */
  unsent: number;
  /** When the first of them passed. */
  unsentNs: number;
  intervalNs: number;
}

const ROUND_MS = 100;
const BEAT_MS = 2_000;
const ALIVE_MS = 10_000;

export function createSharedLimits(
  { clock, log, store }: SharedLimitsDeps,
  { edge, edgesAtFirst }: SharedLimitsOptions,
): SharedLimits {
  const buckets = new Map<string, Bucket>();
  const counters: SharedLimitsCounters = {
    rounds: 0,
    failures: 0,
    edges: edgesAtFirst,
    connected: 0,
    accounts: 0,
    evicted: 0,
  };
  let timers: readonly Timer[] = [];
  let isBusy = false;
  /** Whether the store did not even take a sign of life when it was last given one. */
  let isSilent = false;

  /** The edges that one bucket is divided by: none but this one while the store keeps the sum. */
  const sharers = (): number => (counters.connected === 1 ? 1 : Math.max(1, counters.edges));

  function bucketOf(account: string, intervalNs: number): Bucket {
    const known = buckets.get(account);
    if (known !== undefined) {
      known.intervalNs = intervalNs;
      return known;
    }
    if (buckets.size >= SHARED_ACCOUNTS_MAX) evict();
    const bucket: Bucket = { fullNs: 0, unsent: 0, unsentNs: 0, intervalNs };
    buckets.set(account, bucket);
    counters.accounts = buckets.size;
    return bucket;
  }

  /** Forgets the account that was met first of all. */
  function evict(): void {
    for (const account of buckets.keys()) {
      buckets.delete(account);
      counters.evicted += 1;
      return;
    }
  }

  /** Accounts that spent something, and those that others may have spent from. */
  function due(nowNs: number): readonly (readonly [string, Bucket])[] {
    const chosen: (readonly [string, Bucket])[] = [];
    for (const [account, bucket] of buckets) {
      if (chosen.length >= SHARED_ROUND_MAX) break;
      if (bucket.unsent === 0 && bucket.fullNs <= nowNs) buckets.delete(account);
      else chosen.push([account, bucket]);
    }
    // To the end of the line, so that the next round begins with those that this one left out.
    for (const [account, bucket] of chosen) {
      buckets.delete(account);
      buckets.set(account, bucket);
    }
    counters.accounts = buckets.size;
    return chosen;
  }

  async function round(): Promise<void> {
    const askedNs = clock.nowNs();
    const chosen = due(askedNs);
    if (chosen.length === 0) return;
    const spent = chosen.map(([account, { unsent, unsentNs, intervalNs }]) => {
      const ageNs = unsent === 0 ? 0 : askedNs - unsentNs;
      return { account, count: unsent, intervalNs, ageNs };
    });
    for (const [, bucket] of chosen) bucket.unsent = 0;
    try {
      const behindUs = await store.spend(spent);
      for (const [index, [, bucket]] of chosen.entries()) {
        // What passed since the question is not in the answer; the way there is to the client's
        // favour.
        const sinceNs = bucket.unsent * bucket.intervalNs;
        bucket.fullNs = askedNs + (behindUs[index] ?? 0) * NS_PER_US + sinceNs;
      }
      counters.rounds += 1;
      turned(1);
    } catch (error) {
      // Perhaps it was counted and perhaps not: told again, it may count twice, never too little.
      for (const [index, [, bucket]] of chosen.entries()) {
        const { count = 0, ageNs = 0 } = spent[index] ?? {};
        if (count > 0) bucket.unsentNs = askedNs - ageNs;
        bucket.unsent = Math.min(bucket.unsent + count, UNSENT_MAX);
      }
      counters.failures += 1;
      turned(0, error);
    }
  }

  function turned(connected: 0 | 1, error?: unknown): void {
    if (counters.connected === connected) return;
    counters.connected = connected;
    const { edges } = counters;
    if (connected === 1) log.info({ edges }, "limits are shared with the other edges");
    else log.warn({ err: error, edges }, "limits are not shared now; this edge keeps its share");
  }

  /**
   * One round at a time: a slow store gets fewer, not more. One that is away gets none, because a
   * round may have been counted although it failed; a sign of life may come as often as it will.
   */
  async function roundAlone(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    if (counters.connected === 1) await round();
    else if (isSilent) await beat();
    isBusy = false;
  }

  async function beat(): Promise<void> {
    try {
      counters.edges = Math.max(1, await store.beat(edge, ALIVE_MS));
      isSilent = false;
      turned(1);
    } catch (error) {
      isSilent = true;
      counters.failures += 1;
      turned(0, error);
    }
  }

  return {
    counters,
    waitNs(account, plan, nowNs) {
      const share = sharers();
      const intervalNs = Math.ceil(NS_PER_S / plan.ratePerSecond);
      const { fullNs } = bucketOf(account, intervalNs);
      const burst = Math.max(1, Math.floor(plan.burst / share));
      return Math.max(0, fullNs - nowNs - (burst - 1) * intervalNs * share);
    },
    charge(account, plan, nowNs) {
      const intervalNs = Math.ceil(NS_PER_S / plan.ratePerSecond);
      const bucket = bucketOf(account, intervalNs);
      bucket.fullNs = Math.max(bucket.fullNs, nowNs) + intervalNs * sharers();
      if (bucket.unsent === 0) bucket.unsentNs = nowNs;
      bucket.unsent = Math.min(bucket.unsent + 1, UNSENT_MAX);
    },
    start() {
      store.start();
      timers = [
        clock.every(ROUND_MS, () => void roundAlone()),
        clock.every(BEAT_MS, () => void beat()),
      ];
      void beat();
    },
    async stop() {
      for (const timer of timers) timer.cancel();
      timers = [];
      if (counters.connected === 1) await round();
      store.stop();
    },
  };
}

/** What an edge owes the store at most after it was away; older debts are forgiven. */
const UNSENT_MAX = 1_000_000;
