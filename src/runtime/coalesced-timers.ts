/**
 * Timers that can be early, taken together: a clock like the one that it is made of, but for those
 * of COALESCE_MS or more, which go off at the last multiple of COALESCE_MS that is not after their time.
 * All of one multiple go off one after another, each in a turn of the event loop of its own, but
 * the thread is woken once, which costs several times what such a timer does. So for what is looked
 * at now and then; not for what is wrong before its time.
 *
 *        COALESCE_MS           asked for here ─┐      due ─┐
 *   ──┬──────────────┬──────────────┬───────┴──────┬────┴─────────┬──▶
 *                                                  └ goes off
 *
 * It is late by COALESCE_LATE_MS at most, where a round was late and asks for the next one.
 *
 * Decision: docs/decisions/0023-no-timers-without-work.md
 */

import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";
import { createTimeSlicer } from "./time-slice.ts";

/** A period that is a multiple of it, as most are, is kept exactly. */
export const COALESCE_MS = 200;
export const COALESCE_LATE_MS = 10;

const COALESCE_NS = COALESCE_MS * NS_PER_MS;

type Act = () => void;

interface Entry {
  /** null: cancelled, and what it held on to is free. */
  act: Act | null;
}

/** `before` is called in each round, before its timers. It must not throw. */
export function createCoalescedClock(clock: Clock, beforeTick: () => void = () => {}): Clock {
  /** By the number of their round, in the order of asking. */
  const rounds = new Map<number, Entry[]>();
  /** What the round that goes on has to do, one of them a turn of the event loop. */
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
  /** Goes off for the first of them. */
  let timer: Timer | null = null;
  let timerRound = 0;
  /** The round that went off last. */
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
      // Counted on from when it was due, so that a period which is no multiple is kept on average;
      // what was missed is not made up for.
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
