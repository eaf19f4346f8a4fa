/**
 * This thread's limits, some of them delegated to shared memory where other threads charge them
 * too. `delegate` moves a limit's state into its shared slot, `release` moves it back.
 */

import { intervalNs, type Rate, waitNs } from "./gcra.ts";
import { LocalLimitStates } from "./local-state.ts";
import { NO_LIMIT_SLOT, type ThreadLimitStates } from "./thread-limit-states.ts";

interface Delegated {
  readonly limitSlot: number;
  /** Number of `delegate` calls not yet released. */
  count: number;
}

export class DelegatedLimits {
  /** The limits that are not delegated. */
  readonly states: LocalLimitStates;
  readonly #limitStates: ThreadLimitStates;
  readonly #free: number[] = [];
  readonly #delegated = new Map<string, Delegated>();

  /** Keeps `statesMax` states besides at most `slotCount` delegated ones. */
  constructor(limitStates: ThreadLimitStates, slotCount: number, statesMax: number) {
    this.#limitStates = limitStates;
    this.states = new LocalLimitStates(statesMax);
    for (let limitSlot = slotCount - 1; limitSlot >= 0; limitSlot -= 1) this.#free.push(limitSlot);
  }

  /** Limits with a state, delegated or not. */
  get size(): number {
    return this.#delegated.size + this.states.size;
  }

  /** Delegated limits. */
  get delegatedCount(): number {
    return this.#delegated.size;
  }

  /** The limit's slot, reserved until `release` was called as often; or NO_LIMIT_SLOT. */
  delegate(name: string): number {
    const delegated = this.#delegated.get(name);
    if (delegated !== undefined) {
      delegated.count += 1;
      return delegated.limitSlot;
    }
    const limitSlot = this.#free.pop();
    if (limitSlot === undefined) return NO_LIMIT_SLOT;
    this.#limitStates.set(limitSlot, this.states.take(name));
    this.#delegated.set(name, { limitSlot, count: 1 });
    return limitSlot;
  }

  /** The last release frees the slot; no other thread may charge it any more. */
  release(name: string, nowNs: number): void {
    const delegated = this.#delegated.get(name);
    if (delegated === undefined) return;
    delegated.count -= 1;
    if (delegated.count > 0) return;
    this.#delegated.delete(name);
    this.#free.push(delegated.limitSlot);
    this.states.put(name, this.#limitStates.fullNsOf(delegated.limitSlot), nowNs);
  }

  /** How long the next request must wait. Changes nothing. */
  waitNs(name: string, { ratePerSecond, burst }: Rate, nowNs: number): number {
    const limitSlot = this.#delegated.get(name)?.limitSlot ?? NO_LIMIT_SLOT;
    const interval = intervalNs(ratePerSecond);
    if (limitSlot !== NO_LIMIT_SLOT)
      return this.#limitStates.waitNs(limitSlot, nowNs, interval, burst);
    return waitNs(this.states.of(name)?.fullNs ?? 0, nowNs, interval, burst);
  }

  /** Charges one request: 0, or the nanoseconds to wait, in which case nothing is charged. */
  tryCharge(name: string, { ratePerSecond, burst }: Rate, nowNs: number): number {
    const limitSlot = this.#delegated.get(name)?.limitSlot ?? NO_LIMIT_SLOT;
    const interval = intervalNs(ratePerSecond);
    if (limitSlot !== NO_LIMIT_SLOT)
      return this.#limitStates.tryCharge(limitSlot, nowNs, interval, burst);
    const state = this.states.of(name);
    const wait = waitNs(state?.fullNs ?? 0, nowNs, interval, burst);
    if (wait === 0) this.states.charge(name, state, interval, nowNs);
    return wait;
  }

  /** Undoes a charge at the same rate. */
  refund(name: string, { ratePerSecond }: Rate): void {
    const limitSlot = this.#delegated.get(name)?.limitSlot ?? NO_LIMIT_SLOT;
    const interval = intervalNs(ratePerSecond);
    if (limitSlot !== NO_LIMIT_SLOT) {
      this.#limitStates.refund(limitSlot, interval);
      return;
    }
    const state = this.states.of(name);
    if (state !== undefined) state.fullNs -= interval;
  }
}
