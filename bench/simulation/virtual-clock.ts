/**
 * A clock that jumps to the time of the next event: an hour of a simulated cluster takes seconds.
 *
 * Events run in order of their time, and of their creation when times are equal, so two runs are
 * the same. After an event that settles a promise, its continuations run before the next event,
 * because real code awaits.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../src/core/clock.ts";

interface Entry {
  readonly atNs: number;
  readonly order: number;
  readonly act: () => void;
  cancelled: boolean;
}

export interface VirtualClock extends Clock {
  /** Records that the current event settled a promise. */
  settled(): void;
  /** Lets time pass until then. */
  runUntil(untilNs: number): Promise<void>;
  /** Events so far. */
  readonly events: number;
}

const START_NS = 1_000_000_000;
const START_UNIX_MS = 1_790_000_000_000;
/** More microtask turns than any promise of the parts needs. */
const TURNS = 8;

export function createVirtualClock(): VirtualClock {
  let now = START_NS;
  let order = 0;
  let events = 0;
  let hasSettled = false;
  const heap = new Heap();

  function at(atNs: number, act: () => void): Entry {
    order += 1;
    const entry = { atNs, order, act, cancelled: false };
    heap.push(entry);
    return entry;
  }

  function every(periodMs: number, act: () => void): Timer {
    const periodNs = periodMs * NS_PER_MS;
    let entry: Entry;
    const again = (): void => {
      entry = at(now + periodNs, again);
      act();
    };
    entry = at(now + periodNs, again);
    return {
      cancel() {
        entry.cancelled = true;
      },
    };
  }

  return {
    nowNs: () => now,
    unixMs: () => START_UNIX_MS + (now - START_NS) / NS_PER_MS,
    after(delayMs, act) {
      const entry = at(now + Math.max(0, delayMs) * NS_PER_MS, act);
      return {
        cancel() {
          entry.cancelled = true;
        },
      };
    },
    every,
    settled() {
      hasSettled = true;
    },
    get events() {
      return events;
    },
    async runUntil(untilNs) {
      for (let due = heap.pop(untilNs); due !== null; due = heap.pop(untilNs)) {
        if (due.cancelled) continue;
        now = due.atNs;
        events += 1;
        due.act();
        if (!hasSettled) continue;
        hasSettled = false;
        for (let turn = 0; turn < TURNS; turn += 1) await null;
      }
      now = untilNs;
    },
  };
}

/** A binary heap, the earliest entry on top. */
class Heap {
  readonly #entries: Entry[] = [];

  push(entry: Entry): void {
    const entries = this.#entries;
    let place = entries.length;
    entries.push(entry);
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = entries[above];
      if (parent === undefined || isEarlier(parent, entry)) break;
      entries[place] = parent;
      place = above;
    }
    entries[place] = entry;
  }

  /** The earliest entry if it is due by then, else null. */
  pop(untilNs: number): Entry | null {
    const entries = this.#entries;
    const [top] = entries;
    if (top === undefined || top.atNs > untilNs) return null;
    const last = entries.pop();
    if (last !== undefined && entries.length > 0) this.#sink(last);
    return top;
  }

  #sink(entry: Entry): void {
    const entries = this.#entries;
    let place = 0;
    for (;;) {
      const left = 2 * place + 1;
      const [a, b] = [entries[left], entries[left + 1]];
      if (a === undefined) break;
      const child = b !== undefined && isEarlier(b, a) ? b : a;
      if (isEarlier(entry, child)) break;
      entries[place] = child;
      place = child === a ? left : left + 1;
    }
    entries[place] = entry;
  }
}

function isEarlier(a: Entry, b: Entry): boolean {
  return a.atNs < b.atNs || (a.atNs === b.atNs && a.order < b.order);
}
