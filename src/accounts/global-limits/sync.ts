/**
 * One limit for an account on all edges, without a round trip for any request.
 *
 * Each edge decides at once, from what it knows of the account's bucket. What it let through it
 * tells the store a few times a second, and learns how full the bucket is by everybody's requests.
 * So the limit holds in the long run to the letter; a burst at the same moment on several edges may
 * pass on each of them, and is paid back before anything more passes. While the store is away an
 * edge keeps to its fair share: the plan's rate and burst divided by the edges last known. What
 * that share has paid back by then is not told afterwards.
 *
 * Buckets that other threads charge as well are held in cells, and what was let through there is
 * looked at before each round.
 *
 * Hot path: `tryCharge` is one look-up and a few additions.
 */

import type { Clock, Timer } from "../../core/clock.ts";
import { NS_PER_MS, NS_PER_US } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { Plan } from "../keys/key.ts";
import {
  SHARED_ACCOUNTS_MAX,
  SHARED_LIMITS_READ_PER_ROUND,
  SHARED_LIMITS_SENT_PER_SLICE,
  SHARED_ROUND_MAX,
} from "../limits.ts";
import { type Away, Bucket, type BucketStates, costNs, type Spent } from "./bucket.ts";

/** Where edges tell each other. Every call may reject; none may take long. */
export interface LimitStore {
  start(): void;
  /** Adds what was spent; answers, for each, by how many microseconds the bucket is behind full. */
  spend(spent: readonly Spent[]): Promise<readonly number[]>;
  /** Tells that this edge lives; answers how many do. */
  heartbeat(edge: string, aliveMs: number): Promise<number>;
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
  readonly initialEdgeCount: number;
}

export interface SharedLimitsCounters {
  /** Rounds in which the store answered. */
  rounds: number;
  failures: number;
  /** Edges that were alive when the store last told. */
  edges: number;
  /** 1 while the store answers, else 0. */
  connected: number;
  /** Accounts of which the store is told and asked: others have a full bucket, as known here. */
  accounts: number;
  /** Accounts forgotten before their time, for want of room. */
  evicted: number;
}

export interface SharedLimits {
  /** How long the account has to wait now, in nanoseconds; 0: it may pass. Changes nothing. */
  waitNs(account: string, plan: Plan, nowNs: number): number;
  /** Lets one request through: 0, or the nanoseconds to wait, and then nothing is charged. */
  tryCharge(account: string, plan: Plan, nowNs: number): number;
  /** Other threads charge buckets as well, which are held in these cells; said before the first. */
  join(limitStates: BucketStates): void;
  /** The account's bucket lies in this cell until `release`. Said again for each new plan. */
  delegate(account: string, plan: Plan, limitSlot: number): void;
  /** No other thread charges it any more. */
  release(account: string): void;
  start(): void;
  /** Tells the store what it does not know yet, as far as it answers. */
  stop(): Promise<void>;
  readonly counters: Readonly<SharedLimitsCounters>;
}

const ROUND_MS = 100;
const HEARTBEAT_MS = 2_000;
const ALIVE_MS = 10_000;
/** How often a store that failed in a round is asked for a sign of life before the next is due. */
const ASK_NS = 500 * NS_PER_MS;

export function createSharedLimits(
  { clock, log, store }: SharedLimitsDeps,
  { edge, initialEdgeCount }: SharedLimitsOptions,
): SharedLimits {
  /** Buckets that are not full, or not told, in the order in which they have their turn. */
  const line = new Map<string, Bucket>();
  /** Those that other threads charge, whether they stand in the line or not. */
  const held = new Map<string, Bucket>();
  let hand = held.entries();
  let limitStates: BucketStates | null = null;
  const counters: SharedLimitsCounters = {
    rounds: 0,
    failures: 0,
    edges: initialEdgeCount,
    connected: 0,
    accounts: 0,
    evicted: 0,
  };
  let timers: readonly Timer[] = [];
  let isBusy = false;
  /** Whether the store did not take what it was told last, and when it may be asked again. */
  let isSilent = false;
  let askNs = Number.NEGATIVE_INFINITY;
  let away: Away = { share: 1, untilNs: 0 };

  /** The edges that one bucket is divided by: none but this one while the store keeps the sum. */
  const edgeCount = (): number => (counters.connected === 1 ? 1 : Math.max(1, counters.edges));

  function bucketOf(account: string, plan: Plan, nowNs: number): Bucket {
    const intervalNs = costNs(plan);
    const known = line.get(account) ?? held.get(account);
    if (known !== undefined) {
      known.reprice(intervalNs, nowNs);
      return known;
    }
    const bucket = new Bucket(intervalNs);
    enter(account, bucket);
    return bucket;
  }

  /** Lets it stand in the line, where the account that was met first of all may go for it. */
  function enter(account: string, bucket: Bucket): void {
    if (line.size >= SHARED_ACCOUNTS_MAX && !line.has(account)) {
      const [first = ""] = line.keys();
      line.delete(first);
      // One that is held is not forgotten, and comes back when something is to be told of it.
      if (!held.has(first)) counters.evicted += 1;
    }
    line.set(account, bucket);
    counters.accounts = line.size;
  }

  /** Lets those stand in the line that are held and were charged; looks at so many of them. */
  function gather(nowNs: number): void {
    for (let looks = Math.min(held.size, SHARED_LIMITS_READ_PER_ROUND); looks > 0; looks -= 1) {
      let next = hand.next();
      if (next.done === true) {
        hand = held.entries();
        next = hand.next();
      }
      if (next.done === true) return;
      const [account, bucket] = next.value;
      // Beyond the bound, because it takes no more room by that.
      if (bucket.look(nowNs)) line.set(account, bucket);
    }
  }

  /** Accounts that spent something, and those that others may have spent from. */
  function due(nowNs: number): readonly (readonly [string, Bucket])[] {
    const chosen: (readonly [string, Bucket])[] = [];
    let looks = 0;
    for (const [account, bucket] of line) {
      if (chosen.length >= SHARED_ROUND_MAX || looks >= 2 * SHARED_ROUND_MAX) break;
      looks += 1;
      if (!bucket.look(nowNs) && bucket.fullNs <= nowNs) line.delete(account);
      else chosen.push([account, bucket]);
    }
    // To the end of the line, so that the next round begins with those that this one left out.
    for (const [account, bucket] of chosen) {
      line.delete(account);
      line.set(account, bucket);
    }
    counters.accounts = line.size;
    return chosen;
  }

  /** Asks in turns of the event loop: a thousand questions at once would hold the thread. */
  async function round(): Promise<void> {
    const chosen = due(clock.nowNs());
    const told: Promise<boolean>[] = [];
    for (let first = 0; first < chosen.length; first += SHARED_LIMITS_SENT_PER_SLICE) {
      if (first > 0) await nextTurn();
      if (counters.connected === 0) break;
      told.push(tell(chosen.slice(first, first + SHARED_LIMITS_SENT_PER_SLICE)));
    }
    const isTold = (await Promise.all(told)).every((isTold) => isTold);
    if (isTold && told.length > 0) counters.rounds += 1;
  }

  const nextTurn = (): Promise<void> => new Promise((resolve) => void clock.after(0, resolve));

  /** Whether the store answered. */
  async function tell(chosen: readonly (readonly [string, Bucket])[]): Promise<boolean> {
    const askedNs = clock.nowNs();
    const spent = chosen.map(([account, bucket]) => {
      bucket.repay(away, askedNs);
      return bucket.take(account, askedNs);
    });
    try {
      const behindUs = await store.spend(spent);
      const nowNs = clock.nowNs();
      for (const [index, [, bucket]] of chosen.entries()) {
        bucket.settle(askedNs, (behindUs[index] ?? 0) * NS_PER_US, nowNs);
      }
      return true;
    } catch (error) {
      // Perhaps it was counted and perhaps not: told again, it may count twice, never too little.
      for (const [index, [, bucket]] of chosen.entries()) {
        const untold = spent[index];
        if (untold !== undefined) bucket.putBack(untold, askedNs);
      }
      counters.failures += 1;
      if (counters.connected === 1) askSoon(clock.nowNs());
      turned(0, error);
      return false;
    }
  }

  /** One that comes and goes is not told the same again and again: it may count each of them. */
  function askSoon(nowNs: number): void {
    isSilent = true;
    askNs = Math.max(nowNs, askNs + ASK_NS);
  }

  function turned(connected: 0 | 1, error?: unknown): void {
    if (counters.connected === connected) return;
    counters.connected = connected;
    limitStates?.setEdgeCount(edgeCount());
    const { edges } = counters;
    if (connected === 1) log.info({ edges }, "limits are shared with the other edges");
    else log.warn({ err: error, edges }, "limits are not shared now; this edge keeps its share");
  }

  /**
   * One round at a time: a slow store gets fewer, not more. One that is away gets none, because a
   * round may have been counted although it failed; a sign of life may come as often as it will.
   */
  async function roundAlone(): Promise<void> {
    // Also while there is no round: when a request was is not known for long.
    gather(clock.nowNs());
    if (isBusy) return;
    isBusy = true;
    if (counters.connected === 1) await round();
    else if (isSilent && clock.nowNs() >= askNs) await heartbeat();
    isBusy = false;
  }

  async function heartbeat(): Promise<void> {
    try {
      const edges = Math.max(1, await store.heartbeat(edge, ALIVE_MS));
      if (counters.connected === 0) away = { share: edgeCount(), untilNs: clock.nowNs() };
      counters.edges = edges;
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
    waitNs: (account, plan, nowNs) =>
      bucketOf(account, plan, nowNs).waitNs(plan, nowNs, edgeCount()),
    tryCharge: (account, plan, nowNs) =>
      bucketOf(account, plan, nowNs).tryCharge(plan, nowNs, edgeCount()),
    join(joined) {
      limitStates = joined;
      limitStates.setEdgeCount(edgeCount());
    },
    delegate(account, plan, limitSlot) {
      const nowNs = clock.nowNs();
      const bucket = bucketOf(account, plan, nowNs);
      if (limitStates === null || held.has(account)) return;
      bucket.delegate(limitStates, limitSlot, nowNs);
      held.set(account, bucket);
    },
    release(account) {
      const bucket = held.get(account);
      if (bucket === undefined) return;
      const nowNs = clock.nowNs();
      bucket.release(nowNs);
      held.delete(account);
      if (bucket.look(nowNs) || bucket.fullNs > nowNs) enter(account, bucket);
    },
    start() {
      store.start();
      timers = [
        clock.every(ROUND_MS, () => void roundAlone()),
        clock.every(HEARTBEAT_MS, () => void heartbeat()),
      ];
      void heartbeat();
    },
    async stop() {
      for (const timer of timers) timer.cancel();
      timers = [];
      gather(clock.nowNs());
      if (counters.connected === 1) await round();
      store.stop();
    },
  };
}
