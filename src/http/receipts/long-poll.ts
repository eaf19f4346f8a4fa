/**
 * Answers that are held until a transaction has ended: `?wait=landed`. A waiter keeps a ticket,
 * which is looked at a few dozen times a second while anybody waits, so that nothing is added to
 * the way of a transaction. It is answered with the receipt as it is when the end is known, when
 * its time is up, or when this edge drains, and forgotten when its client leaves. A block may end
 * what very many wait for, so they are answered a few in a turn of the event loop.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import { createTimeSlicer } from "../../runtime/time-slice.ts";
import {
  RECEIPT_LONG_POLLS_MAX,
  RECEIPT_LONG_POLLS_PER_ACCOUNT_MAX,
  RECEIPT_RESPONSES_PER_SLICE,
} from "../limits.ts";
import type { WaitGoal } from "./query.ts";
import { Quota } from "./quota.ts";
import type { ReceiptSource } from "./source.ts";

export interface WaitsDeps {
  readonly clock: Clock;
  readonly receipts: Pick<ReceiptSource, "reached">;
}

/** One held answer. */
export interface Wait {
  readonly account: string;
  readonly ticket: number;
  readonly goal: WaitGoal;
  readonly timeoutMs: number;
  /** Gives the answer. */
  readonly respond: () => void;
}

export interface Waits {
  /** Holds an answer. Answers how to forget it, or whose bound is reached. */
  add(wait: Wait): { readonly leave: () => void } | "account" | "all";
  /** Answers all, some now and the others in turns of their own, and from now on each at once. */
  drain(): void;
  readonly counters: WaitCounters;
}

export interface WaitCounters {
  /** Answers held now. */
  pending: number;
  /** Answered because the transaction came that far, because of the time, or when draining. */
  reached: number;
  timedOut: number;
  drained: number;
  /** Clients that left before their answer. */
  left: number;
  /** Not held, because too many are. */
  refused: number;
}

interface PendingWait extends Wait {
  readonly untilNs: number;
}

export function createWaits({ clock, receipts }: WaitsDeps): Waits {
  const pending = new Set<PendingWait>();
  const quota = new Quota(RECEIPT_LONG_POLLS_MAX, RECEIPT_LONG_POLLS_PER_ACCOUNT_MAX);
  const counters: WaitCounters = {
    pending: 0,
    reached: 0,
    timedOut: 0,
    drained: 0,
    left: 0,
    refused: 0,
  };
  const slicer = createTimeSlicer(clock, look);
  let timer: Timer | null = null;
  let draining = false;

  function release(wait: PendingWait): boolean {
    if (!pending.delete(wait)) return false;
    quota.release(wait.account);
    counters.pending = pending.size;
    if (pending.size > 0) return true;
    timer?.cancel();
    timer = null;
    slicer.stop();
    return true;
  }

  /** Whether it is to be answered now; counts why. */
  function isOver({ ticket, goal, untilNs }: PendingWait, nowNs: number): boolean {
    if (draining) counters.drained += 1;
    else if (receipts.reached(ticket, goal)) counters.reached += 1;
    else if (nowNs >= untilNs) counters.timedOut += 1;
    else return false;
    return true;
  }

  /** As many answers as one turn has. Answers whether there may be more. */
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
        counters.refused += 1;
        return full;
      }
      const entry: PendingWait = { ...wait, untilNs: clock.nowNs() + wait.timeoutMs * NS_PER_MS };
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

/** Between two looks at what is waited for. */
const LOOK_MS = 10;
