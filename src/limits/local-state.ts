/**
 * Rate limit states by name, with a bound on their number. Each insertion checks the next two
 * entries in order and removes those whose bucket is full again. So unused states are removed as
 * fast as new ones arrive, and no request pays for a scan of all of them, which takes 5 ms for
 * 262,144 and would run at each insertion once the table is full.
 *
 * Hot path: one look-up for a known name.
 */

import { boundedNs, charged, intervalNs, type Rate, waitNs } from "./gcra.ts";

/** The state of one limit. */
export interface LimitState {
  /** When the bucket is full again, by `Clock.nowNs`. */
  fullNs: number;
}

export class LocalLimitStates {
  /** States evicted early because the table was full. */
  evicted = 0;
  readonly #max: number;
  readonly #states = new Map<string, LimitState>();
  #hand = this.#states.entries();

  /** Keeps at most `max` states. */
  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#states.size;
  }

  /** The state of a name; undefined for a full bucket. */
  of(name: string): LimitState | undefined {
    return this.#states.get(name);
  }

  /**
   * How long until one more request of a name is allowed, in nanoseconds; 0 is now. `state` is the
   * current result of `of` for it.
   */
  waitNs(state: LimitState | undefined, { ratePerSecond, burst }: Rate, nowNs: number): number {
    if (state === undefined) return 0;
    const interval = intervalNs(ratePerSecond);
    state.fullNs = boundedNs(state.fullNs, nowNs, interval, burst);
    return waitNs(state.fullNs, nowNs, interval, burst);
  }

  /** Charges one allowed request; `state` is the current result of `of` for the name. */
  charge(name: string, state: LimitState | undefined, interval: number, nowNs: number): void {
    if (state === undefined) this.#add(name, charged(0, nowNs, interval), nowNs);
    else state.fullNs = charged(state.fullNs, nowNs, interval);
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

  /** The next entry in order, wrapping around; null if there is none. */
  #next(): [string, LimitState] | null {
    const next = this.#hand.next();
    if (next.done !== true) return next.value;
    this.#hand = this.#states.entries();
    const first = this.#hand.next();
    return first.done === true ? null : first.value;
  }
}

/** More than one, or unused states would never become fewer. */
const LOOKS = 2;
