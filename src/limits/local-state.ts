/**
 * The states of rate limits by whom they limit, at most so many. Each newcomer lets the next two in
 * turn be looked at, and those that say nothing any more go. So what is of no use goes as fast as
 * what is new comes, and no request pays for looking at all of them: 5 ms for 262,144, which at the
 * bound each newcomer paid.
 *
 * Hot path: one look-up for whom is known.
 */

import { charged } from "./gcra.ts";

/** One limit. */
export interface LimitState {
  /** When the bucket is full again, by `Clock.nowNs`. */
  fullNs: number;
}

export class LocalLimitStates {
  /** States forgotten before their time, for want of room. */
  evicted = 0;
  readonly #max: number;
  readonly #states = new Map<string, LimitState>();
  #hand = this.#states.entries();

  /** Remembers `max` at most. */
  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#states.size;
  }

  /** What is known of one; undefined for a full bucket. */
  of(name: string): LimitState | undefined {
    return this.#states.get(name);
  }

  /** Counts one request that was let through; `state` is what `of` said of the name just now. */
  charge(name: string, state: LimitState | undefined, interval: number, nowNs: number): void {
    if (state === undefined) this.#add(name, charged(0, nowNs, interval), nowNs);
    else state.fullNs = charged(state.fullNs, nowNs, interval);
  }

  /** When the bucket is full again; 0 where that is not known. Forgets it: who asked has it now. */
  take(name: string): number {
    const fullNs = this.#states.get(name)?.fullNs ?? 0;
    this.#states.delete(name);
    return fullNs;
  }

  /** Remembers what somebody else had, for as long as it says something. */
  put(name: string, fullNs: number, nowNs: number): void {
    this.#states.delete(name);
    if (fullNs > nowNs) this.#add(name, fullNs, nowNs);
  }

  #add(name: string, fullNs: number, nowNs: number): void {
    for (let look = 0; look < LOOKS; look += 1) {
      const looked = this.#next();
      if (looked === null) break;
      if (looked[1].fullNs <= nowNs) this.#states.delete(looked[0]);
    }
    if (this.#states.size >= this.#max) {
      this.#states.delete(this.#next()?.[0] ?? "");
      this.evicted += 1;
    }
    this.#states.set(name, { fullNs });
  }

  /** The next in turn, after the last one the first again; null where there is none. */
  #next(): [string, LimitState] | null {
    const next = this.#hand.next();
    if (next.done !== true) return next.value;
    this.#hand = this.#states.entries();
    const first = this.#hand.next();
    return first.done === true ? null : first.value;
  }
}

/** More than one, or those that are of no use would never become fewer. */
const LOOKS = 2;
