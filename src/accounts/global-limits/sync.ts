/**
 * One limit per account across all edges, without a round trip per request.
 *
 * Each edge decides immediately from its local view of the account's bucket. A few times a second
 * it reports accepted requests to the store and receives the bucket's level over all edges. The
 * limit is therefore exact in the long run; a simultaneous burst may be accepted on each of several
 * edges and is repaid before anything more is accepted. While the store is unreachable, an edge
 * keeps to its share: the plan's rate and burst divided by the last known edge count. What that
 * share has repaid by then is not reported afterwards.
 *
 * With ingress threads, all threads charge the buckets in the native engine; each round first takes
 * over those that were charged, and reads their counts.
 *
 * Hot path: `tryCharge` is one look-up and a few additions.
 */

import { type Clock, NS_PER_MS, NS_PER_US, sleep, type Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Plan } from "../keys/key.ts";
import {
  GLOBAL_ACCOUNTS_MAX,
  GLOBAL_LIMITS_READ_PER_ROUND,
  GLOBAL_LIMITS_SENT_PER_SLICE,
  GLOBAL_ROUND_MAX,
} from "../limits.ts";
import { type Away, Bucket, type BucketStates, costNs, type Spent } from "./bucket.ts";

/** The store that connects the edges. Every call may reject; none may take long. */
export interface LimitStore {
  start(): void;
  /** Adds accepted requests; returns for each how many microseconds the bucket is below full. */
  spend(spent: readonly Spent[]): Promise<readonly number[]>;
  /** Reports that this edge is alive; returns the number of live edges. */
  heartbeat(edge: string, aliveMs: number): Promise<number>;
  stop(): void;
}

export interface GlobalLimitsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: LimitStore;
}

export interface GlobalLimitsOptions {
  /** This edge's unique name. */
  readonly edge: string;
  /** Edge count assumed until the store returns it. */
  readonly initialEdgeCount: number;
}

export interface GlobalLimitsCounters {
  /** Rounds that the store answered. */
  rounds: number;
  failures: number;
  /** Live edges in the store's last response. */
  edges: number;
  /** 1 while the store responds, else 0. */
  connected: number;
  /** Accounts synchronized with the store; others have a full bucket locally. */
  accounts: number;
  /** Accounts evicted early because the table was full. */
  evicted: number;
}

export interface GlobalLimits {
  /** Nanoseconds until the account's next request is allowed; 0: allowed now. Changes nothing. */
  waitNs(account: string, plan: Plan, nowNs: number): number;
  /** Charges one request and returns 0, or returns the wait in nanoseconds and charges nothing. */
  tryCharge(account: string, plan: Plan, nowNs: number): number;
  /**
   * Has all threads charge these buckets, and none those of this object; call before the first
   * request.
   */
  join(limitStates: BucketStates): void;
  start(): void;
  /** Reports what the store does not know yet, if it responds. */
  stop(): Promise<void>;
  readonly counters: Readonly<GlobalLimitsCounters>;
}

const ROUND_MS = 100;
const HEARTBEAT_MS = 2_000;
const ALIVE_MS = 10_000;
/** Interval of extra heartbeats after a failed round, until the next regular one. */
const ASK_NS = 500 * NS_PER_MS;

export function createGlobalLimits(
  { clock, log, store }: GlobalLimitsDeps,
  { edge, initialEdgeCount }: GlobalLimitsOptions,
): GlobalLimits {
  /** Buckets that are not full or not reported, in the order in which rounds process them. */
  const line = new Map<string, Bucket>();
  /** Buckets that other threads charge too, queued or not. */
  const held = new Map<string, Bucket>();
  let hand = held.entries();
  let limitStates: BucketStates | null = null;
  const counters: GlobalLimitsCounters = {
    rounds: 0,
    failures: 0,
    edges: initialEdgeCount,
    connected: 0,
    accounts: 0,
    evicted: 0,
  };
  let timers: readonly Timer[] = [];
  let isBusy = false;
  /** Whether the store missed the last report, and when it may be contacted again. */
  let isSilent = false;
  let askNs = Number.NEGATIVE_INFINITY;
  let away: Away = { share: 1, untilNs: 0 };

  /** Edges that divide one bucket: 1 while the store keeps the sum. */
  const edgeCount = (): number => (counters.connected === 1 ? 1 : Math.max(1, counters.edges));

  function bucketOf(account: string, plan: Plan, nowNs: number): Bucket {
    const intervalNs = costNs(plan);
    const known = line.get(account);
    if (known !== undefined) {
      known.reprice(intervalNs, nowNs);
      return known;
    }
    const bucket = new Bucket(intervalNs);
    enter(account, bucket);
    return bucket;
  }

  /** Queues the bucket, evicting the oldest account if the queue is full. */
  function enter(account: string, bucket: Bucket): void {
    if (line.size >= GLOBAL_ACCOUNTS_MAX && !line.has(account)) {
      const [first = ""] = line.keys();
      line.delete(first);
      // A held bucket is not lost: it is queued again when there is something to report.
      if (!held.has(first)) counters.evicted += 1;
    }
    line.set(account, bucket);
    counters.accounts = line.size;
  }

  /** Takes over buckets that were charged, as far as there is room. */
  function takeCharged(limitStates: BucketStates): void {
    const room = Math.min(GLOBAL_ACCOUNTS_MAX - held.size, GLOBAL_LIMITS_READ_PER_ROUND);
    for (const { account, limitSlot } of limitStates.takeCharged(Math.max(0, room))) {
      const { intervalNs } = limitStates.read(limitSlot);
      held.set(account, new Bucket(intervalNs, limitStates, limitSlot));
    }
  }

  /** Queues held buckets that were charged; checks a bounded number of them. */
  function gather(nowNs: number): void {
    if (limitStates !== null) takeCharged(limitStates);
    for (let looks = Math.min(held.size, GLOBAL_LIMITS_READ_PER_ROUND); looks > 0; looks -= 1) {
      let next = hand.next();
      if (next.done === true) {
        hand = held.entries();
        next = hand.next();
      }
      if (next.done === true) return;
      const [account, bucket] = next.value;
      // At most as many as are held.
      if (bucket.look(nowNs)) line.set(account, bucket);
      else if (!line.has(account) && bucket.fullNs <= nowNs) {
        held.delete(account);
        bucket.release();
      }
    }
  }

  /** Accounts that were charged here, and those that other edges may have charged. */
  function due(nowNs: number): readonly (readonly [string, Bucket])[] {
    const chosen: (readonly [string, Bucket])[] = [];
    let looks = 0;
    for (const [account, bucket] of line) {
      if (chosen.length >= GLOBAL_ROUND_MAX || looks >= 2 * GLOBAL_ROUND_MAX) break;
      looks += 1;
      if (!bucket.look(nowNs) && bucket.fullNs <= nowNs) line.delete(account);
      else chosen.push([account, bucket]);
    }
    // Moved to the end, so that the next round starts with those that this one skipped.
    for (const [account, bucket] of chosen) {
      line.delete(account);
      line.set(account, bucket);
    }
    counters.accounts = line.size;
    return chosen;
  }

  /**
   * Sends in slices over several event-loop turns: 1,000 requests at once would block the thread.
   */
  async function round(): Promise<void> {
    const chosen = due(clock.nowNs());
    const sends: Promise<boolean>[] = [];
    for (let first = 0; first < chosen.length; first += GLOBAL_LIMITS_SENT_PER_SLICE) {
      if (first > 0) await sleep(clock, 0);
      if (counters.connected === 0) break;
      sends.push(send(chosen.slice(first, first + GLOBAL_LIMITS_SENT_PER_SLICE)));
    }
    const isSent = (await Promise.all(sends)).every((isSent) => isSent);
    if (isSent && sends.length > 0) counters.rounds += 1;
  }

  /** Returns whether the store responded. */
  async function send(chosen: readonly (readonly [string, Bucket])[]): Promise<boolean> {
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
      // The store may have counted it: a repeated report may count twice, but never too little.
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

  /** Limits repeated reports to an unstable store, because each may count. */
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
    else {
      const cause = messageOf(error);
      log.warn({ cause, edges }, "limits are not shared now; this edge keeps its share");
    }
  }

  /**
   * Runs one round at a time: a slow store gets fewer, not more. An unreachable store gets none,
   * because a failed round may have been counted; heartbeats can be repeated freely.
   */
  async function roundAlone(): Promise<void> {
    // Also without a round, because the time of a charge is known only for a short period.
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
