/**
 * Long polls for the end of a transaction: `?wait=landed`. A waiter keeps a ticket, which is polled
 * every 10 ms while any request waits, so the submission path does no extra work. It is answered
 * with the current receipt when the goal is reached, at timeout, or when this edge drains, and
 * forgotten when its client disconnects. One block may end very many waits, so they are answered in
 * slices over several event loop turns.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import type { ReceiptSource, WaitGoal } from "../../core/receipt-source.ts";
import { createTimeSlicer } from "../../runtime/time-slice.ts";
import {
  RECEIPT_LONG_POLLS_MAX,
  RECEIPT_LONG_POLLS_PER_ACCOUNT_MAX,
  RECEIPT_RESPONSES_PER_SLICE,
} from "../limits.ts";
import { Quota } from "./quota.ts";

export interface LongPollsDeps {
  readonly clock: Clock;
  readonly receipts: Pick<ReceiptSource, "reached">;
}

/** One long poll. */
export interface LongPoll {
  readonly account: string;
  readonly ticket: number;
  readonly goal: WaitGoal;
  readonly timeoutMs: number;
  /** Sends the response. */
  readonly respond: () => void;
}

export interface LongPolls {
  /** Adds a long poll. Returns how to remove it, or whose quota is exhausted. */
  add(wait: LongPoll): { readonly leave: () => void } | "account" | "all";
  /** Answers all, in slices; from now on each new one is answered immediately. */
  drain(): void;
  readonly counters: LongPollCounters;
}

export interface LongPollCounters {
  /** Long polls pending now. */
  pending: number;
  /** Answered because the goal was reached, at timeout, or when draining. */
  reached: number;
  timedOut: number;
  drained: number;
  /** Clients that disconnected before their response. */
  left: number;
  /** Rejected because a quota is exhausted. */
  rejected: number;
}

interface PendingLongPoll extends LongPoll {
  readonly untilNs: number;
}

export function createLongPolls({ clock, receipts }: LongPollsDeps): LongPolls {
  const pending = new Set<PendingLongPoll>();
  const quota = new Quota(RECEIPT_LONG_POLLS_MAX, RECEIPT_LONG_POLLS_PER_ACCOUNT_MAX);
  const counters: LongPollCounters = {
    pending: 0,
    reached: 0,
    timedOut: 0,
    drained: 0,
    left: 0,
    rejected: 0,
  };
  const slicer = createTimeSlicer(clock, look);
  let timer: Timer | null = null;
  let draining = false;

  function release(wait: PendingLongPoll): boolean {
    if (!pending.delete(wait)) return false;
    quota.release(wait.account);
    counters.pending = pending.size;
    if (pending.size > 0) return true;
    timer?.cancel();
    timer = null;
    slicer.stop();
    return true;
  }

  /** Whether it must be answered now; counts the reason. */
  function isOver({ ticket, goal, untilNs }: PendingLongPoll, nowNs: number): boolean {
    if (draining) counters.drained += 1;
    else if (receipts.reached(ticket, goal)) counters.reached += 1;
    else if (nowNs >= untilNs) counters.timedOut += 1;
    else return false;
    return true;
  }

  /** Answers one slice. Returns whether there may be more. */
  function look(): boolean {
    const nowNs = clock.nowNs();
    let responses = 0;
    for (const wait of pending) {
      if (responses === RECEIPT_RESPONSES_PER_SLICE) return true;
      if (!isOver(wait, nowNs)) continue;
      release(wait);
      wait.respond();
      responses += 1;
    }
    return false;
  }

  return {
    counters,
    add(wait) {
      if (draining) {
        counters.drained += 1;
        wait.respond();
        return { leave() {} };
      }
      const full = quota.acquire(wait.account);
      if (full !== null) {
        counters.rejected += 1;
        return full;
      }
      const entry: PendingLongPoll = {
        ...wait,
        untilNs: clock.nowNs() + wait.timeoutMs * NS_PER_MS,
      };
      pending.add(entry);
      counters.pending = pending.size;
      timer ??= clock.every(LOOK_MS, () => slicer.start());
      return {
        leave() {
          if (release(entry)) counters.left += 1;
        },
      };
    },
    drain() {
      draining = true;
      slicer.start();
    },
  };
}

/** Interval between two polls of the tickets. */
const LOOK_MS = 10;
