/**
 * The limits of this thread, of which some lie where other threads charge them as well: those that
 * are held. What was known of one goes with it into its cell, and back when it is let go.
 */

import { intervalNs, type Rate, waitNs } from "./gcra.ts";
import { LimitStates } from "./local-state.ts";
import { type LimitCells, NO_CELL } from "./shared-state.ts";

interface Held {
  readonly cell: number;
  /** How often it is held. */
  count: number;
}

export class HeldLimits {
  /** Those that are not held. */
  readonly states: LimitStates;
  readonly #cells: LimitCells;
  readonly #free: number[] = [];
  readonly #held = new Map<string, Held>();

  /** Remembers `statesMax` beside those that are held, of which there are `cellCount` at most. */
  constructor(cells: LimitCells, cellCount: number, statesMax: number) {
    this.#cells = cells;
    this.states = new LimitStates(statesMax);
    for (let cell = cellCount - 1; cell >= 0; cell -= 1) this.#free.push(cell);
  }

  /** Limits that are known, held or not. */
  get size(): number {
    return this.#held.size + this.states.size;
  }

  /** Those that are held. */
  get heldCount(): number {
    return this.#held.size;
  }

  /** The cell of the limit, which stays its own until `release` was called as often; or NO_CELL. */
  hold(name: string): number {
    const held = this.#held.get(name);
    if (held !== undefined) {
      held.count += 1;
      return held.cell;
    }
    const cell = this.#free.pop();
    if (cell === undefined) return NO_CELL;
    this.#cells.set(cell, this.states.take(name));
    this.#held.set(name, { cell, count: 1 });
    return cell;
  }

  /** With the last holder, the cell is free; no other thread may charge it any more. */
  release(name: string, nowNs: number): void {
    const held = this.#held.get(name);
    if (held === undefined) return;
    held.count -= 1;
    if (held.count > 0) return;
    this.#held.delete(name);
    this.#free.push(held.cell);
    this.states.put(name, this.#cells.fullNsOf(held.cell), nowNs);
  }

  /** How long the next request has to wait. Changes nothing. */
  waitNs(name: string, { ratePerSecond, burst }: Rate, nowNs: number): number {
    const cell = this.#held.get(name)?.cell ?? NO_CELL;
    const interval = intervalNs(ratePerSecond);
    if (cell !== NO_CELL) return this.#cells.waitNs(cell, nowNs, interval, burst);
    return waitNs(this.states.of(name)?.fullNs ?? 0, nowNs, interval, burst);
  }

  /** Lets one request through: 0, or the nanoseconds to wait, and then nothing is charged. */
  tryCharge(name: string, { ratePerSecond, burst }: Rate, nowNs: number): number {
    const cell = this.#held.get(name)?.cell ?? NO_CELL;
    const interval = intervalNs(ratePerSecond);
    if (cell !== NO_CELL) return this.#cells.tryCharge(cell, nowNs, interval, burst);
    const state = this.states.of(name);
    const wait = waitNs(state?.fullNs ?? 0, nowNs, interval, burst);
    if (wait === 0) this.states.charge(name, state, interval, nowNs);
    return wait;
  }

  /** Undoes a charge at the same rate. */
  giveBack(name: string, { ratePerSecond }: Rate): void {
    const cell = this.#held.get(name)?.cell ?? NO_CELL;
    const interval = intervalNs(ratePerSecond);
    if (cell !== NO_CELL) this.#cells.giveBack(cell, interval);
    const state = this.states.of(name);
    if (state !== undefined) state.fullNs -= interval;
  }
}
