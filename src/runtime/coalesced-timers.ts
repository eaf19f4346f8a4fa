/**
 * A clock whose long timers may fire early, together: timers of COALESCE_MS or more fire at the
 * last multiple of COALESCE_MS that is not after their time. All timers of one multiple fire one
 * after another, each in its own turn of the event loop, but the thread wakes once; a wake-up costs
 * several times what such a timer does. Use it for periodic checks, not for work that is wrong
 * before its time.
 *
 *        COALESCE_MS           asked for here ─┐      due ─┐
 *   ──┬──────────────┬──────────────┬───────┴──────┬────┴─────────┬──▶
 *                                                  └ fires
 *
 * A timer is at most COALESCE_LATE_MS late, when a round was late and requests the next one.
 *
 * Decision: docs/decisions/0023-no-timers-without-work.md
 */

import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";
import { createTimeSlicer } from "./time-slice.ts";

/** Periods that are a multiple of it, as most are, are kept exactly. */
export const COALESCE_MS = 200;
export const COALESCE_LATE_MS = 10;

const COALESCE_NS = COALESCE_MS * NS_PER_MS;

type Act = () => void;

interface Entry {
  /** null: cancelled, and its references are released. */
  act: Act | null;
}

/** `beforeTick` runs in each round before its timers. It must not throw. */
export function createCoalescedClock(clock: Clock, beforeTick: () => void = () => {}): Clock {
  /** By round number, in the order of the requests. */
  const rounds = new Map<number, Entry[]>();
  /** Remaining work of the round in progress, one entry per turn of the event loop. */
  const due: Entry[] = [];
  let done = 0;
  const slicer = createTimeSlicer(clock, () => {
    const entry = due[done];
    done += 1;
    entry?.act?.();
    if (done < due.length) return true;
    due.length = 0;
    done = 0;
    return false;
  });
  /** Fires for the first round. */
  let timer: Timer | null = null;
  let timerRound = 0;
  /** The last round that fired. */
  let last = Number.NEGATIVE_INFINITY;

  function at(dueNs: number, act: Act): Timer {
    const latestNs = dueNs + COALESCE_LATE_MS * NS_PER_MS;
    const round = Math.max(Math.floor(latestNs / COALESCE_NS), last + 1);
    const entry: Entry = { act };
    const others = rounds.get(round);
    if (others === undefined) rounds.set(round, [entry]);
    else others.push(entry);
    if (timer === null || round < timerRound) arm(round);
    return {
      cancel() {
        entry.act = null;
      },
    };
  }

  function arm(round: number): void {
    timer?.cancel();
    timerRound = round;
    const waitMs = Math.ceil((round * COALESCE_NS - clock.nowNs()) / NS_PER_MS);
    timer = clock.after(Math.max(1, waitMs), fire);
  }

  function fire(): void {
    timer = null;
    last = Math.max(timerRound, Math.floor(clock.nowNs() / COALESCE_NS));
    let next = Number.POSITIVE_INFINITY;
    for (const [round, entries] of rounds) {
      const isDue = round <= last;
      if (isDue) due.push(...entries);
      if (isDue || entries.every(({ act }) => act === null)) rounds.delete(round);
      else next = Math.min(next, round);
    }
    if (next < Number.POSITIVE_INFINITY) arm(next);
    beforeTick();
    slicer.start();
  }

  function every(periodMs: number, act: Act): Timer {
    const periodNs = periodMs * NS_PER_MS;
    let dueNs = clock.nowNs() + periodNs;
    const again = (): void => {
      // Counted from the due time, so that a period which is no multiple is kept on average; missed
      // periods are not made up for.
      dueNs = Math.max(dueNs + periodNs, clock.nowNs());
      pending = at(dueNs, again);
      act();
    };
    let pending = at(dueNs, again);
    return { cancel: () => pending.cancel() };
  }

  return {
    nowNs: clock.nowNs,
    unixMs: clock.unixMs,
    after(delayMs, act) {
      if (delayMs < COALESCE_MS) return clock.after(delayMs, act);
      return at(clock.nowNs() + delayMs * NS_PER_MS, act);
    },
    every(periodMs, act) {
      return periodMs < COALESCE_MS ? clock.every(periodMs, act) : every(periodMs, act);
    },
  };
}
