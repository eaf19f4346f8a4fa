/**
 * Answers that are held until a transaction has ended: `?wait=landed`. A waiter keeps a ticket,
 * which is looked at a few dozen times a second while anybody waits, so that nothing is added to
 * the way of a transaction. It is answered with the receipt as it is when the end is known, when
 * its time is up, or when this edge drains, and forgotten when its client leaves. A block may end
 * what very many wait for, so they are answered a few in a turn of the event loop.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import { createTurns } from "../../runtime/time-slice.ts";
import {
  RECEIPT_ANSWERS_A_TURN,
  RECEIPT_WAITS_MAX,
  RECEIPT_WAITS_PER_ACCOUNT_MAX,
} from "../limits.ts";
import type { WaitGoal } from "./query.ts";
import { Places } from "./quota.ts";
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
  readonly answer: () => void;
}

export interface Waits {
  /** Holds an answer. Answers how to forget it, or whose bound is reached. */
  hold(wait: Wait): { readonly leave: () => void } | "account" | "all";
  /** Answers all, some now and the others in turns of their own, and from now on each at once. */
  drain(): void;
  readonly counters: WaitCounters;
}

export interface WaitCounters {
  /** Answers held now. */
  held: number;
  /** Answered because the transaction came that far, because of the time, or when draining. */
  reached: number;
  timedOut: number;
  drained: number;
  /** Clients that left before their answer. */
  left: number;
  /** Not held, because too many are. */
  refused: number;
}

interface Held extends Wait {
  readonly untilNs: number;
}

export function createWaits({ clock, receipts }: WaitsDeps): Waits {
  const held = new Set<Held>();
  const places = new Places(RECEIPT_WAITS_MAX, RECEIPT_WAITS_PER_ACCOUNT_MAX);
  const counters: WaitCounters = {
    held: 0,
    reached: 0,
    timedOut: 0,
    drained: 0,
    left: 0,
    refused: 0,
  };
  const turns = createTurns(clock, look);
  let timer: Timer | null = null;
  let draining = false;

  function release(wait: Held): boolean {
    if (!held.delete(wait)) return false;
    places.leave(wait.account);
    counters.held = held.size;
    if (held.size > 0) return true;
    timer?.cancel();
    timer = null;
    turns.stop();
    return true;
  }

  /** Whether it is to be answered now; counts why. */
  function isOver({ ticket, goal, untilNs }: Held, nowNs: number): boolean {
    if (draining) counters.drained += 1;
    else if (receipts.reached(ticket, goal)) counters.reached += 1;
    else if (nowNs >= untilNs) counters.timedOut += 1;
    else return false;
    return true;
  }

  /** As many answers as one turn has. Answers whether there may be more. */
  function look(): boolean {
    const nowNs = clock.nowNs();
    let answers = 0;
    for (const wait of held) {
      if (answers === RECEIPT_ANSWERS_A_TURN) return true;
      if (!isOver(wait, nowNs)) continue;
      release(wait);
      wait.answer();
      answers += 1;
    }
    return false;
  }

  return {
    counters,
    hold(wait) {
      if (draining) {
        counters.drained += 1;
        wait.answer();
        return { leave() {} };
      }
      const full = places.take(wait.account);
      if (full !== null) {
        counters.refused += 1;
        return full;
      }
      const entry: Held = { ...wait, untilNs: clock.nowNs() + wait.timeoutMs * NS_PER_MS };
      held.add(entry);
      counters.held = held.size;
      timer ??= clock.every(LOOK_MS, () => turns.begin());
      return {
        leave() {
          if (release(entry)) counters.left += 1;
        },
      };
    },
    drain() {
      draining = true;
      turns.begin();
    },
  };
}

/** Between two looks at what is waited for. */
const LOOK_MS = 10;
