/**
 * The limits of this thread, of which some lie where other threads charge them as well: those that
 * are held. What was known of one goes with it into its cell, and back when it is let go.
 */

import { intervalNs, type Rate, waitNs } from "./gcra.ts";
import { LocalLimitStates } from "./local-state.ts";
import { NO_LIMIT_SLOT, type SharedLimitStates } from "./shared-state.ts";

interface Delegated {
  readonly limitSlot: number;
  /** How often it is held. */
  count: number;
}

export class DelegatedLimits {
  /** Those that are not held. */
  readonly states: LocalLimitStates;
  readonly #limitStates: SharedLimitStates;
  readonly #free: number[] = [];
  readonly #delegated = new Map<string, Delegated>();

  /** Remembers `statesMax` beside those that are held, of which there are `cellCount` at most. */
  constructor(limitStates: SharedLimitStates, slotCount: number, statesMax: number) {
    this.#limitStates = limitStates;
    this.states = new LocalLimitStates(statesMax);
    for (let limitSlot = slotCount - 1; limitSlot >= 0; limitSlot -= 1) this.#free.push(limitSlot);
  }

  /** Limits that are known, held or not. */
  get size(): number {
    return this.#delegated.size + this.states.size;
  }

  /** Those that are held. */
  get delegatedCount(): number {
    return this.#delegated.size;
  }

  /** The cell of the limit, which stays its own until `release` was called as often; or NO_LIMIT_SLOT. */
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

  /** With the last holder, the cell is free; no other thread may charge it any more. */
  release(name: string, nowNs: number): void {
    const delegated = this.#delegated.get(name);
    if (delegated === undefined) return;
    delegated.count -= 1;
    if (delegated.count > 0) return;
    this.#delegated.delete(name);
    this.#free.push(delegated.limitSlot);
    this.states.put(name, this.#limitStates.fullNsOf(delegated.limitSlot), nowNs);
  }

  /** How long the next request has to wait. Changes nothing. */
  waitNs(name: string, { ratePerSecond, burst }: Rate, nowNs: number): number {
    const limitSlot = this.#delegated.get(name)?.limitSlot ?? NO_LIMIT_SLOT;
    const interval = intervalNs(ratePerSecond);
    if (limitSlot !== NO_LIMIT_SLOT)
      return this.#limitStates.waitNs(limitSlot, nowNs, interval, burst);
    return waitNs(this.states.of(name)?.fullNs ?? 0, nowNs, interval, burst);
  }

  /** Lets one request through: 0, or the nanoseconds to wait, and then nothing is charged. */
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
    if (limitSlot !== NO_LIMIT_SLOT) this.#limitStates.refund(limitSlot, interval);
    const state = this.states.of(name);
    if (state !== undefined) state.fullNs -= interval;
  }
}
