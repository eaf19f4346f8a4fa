/**
 * Which limits that hold over all edges lie in cells that other threads charge: those of accounts
 * with a pass. A cell is one account's until it was let go as often as it was held.
 */

import type { RatePlan } from "./gate.ts";
import { SHARED_CELLS_MAX } from "./global-state.ts";
import { NO_CELL } from "./shared-state.ts";

/** Where the limits are; the state of each goes into its cell, and back. */
export interface HoldableLimits {
  /** Said again for each new plan. */
  hold(account: string, plan: RatePlan, cell: number): void;
  /** No other thread charges it any more. */
  release(account: string): void;
}

interface Held {
  readonly cell: number;
  /** How often it is held. */
  count: number;
}

export class SharedHolds {
  readonly #limits: HoldableLimits;
  readonly #held = new Map<string, Held>();
  readonly #free = Array.from({ length: SHARED_CELLS_MAX }, (_, index) => {
    return SHARED_CELLS_MAX - 1 - index;
  });

  constructor(limits: HoldableLimits) {
    this.#limits = limits;
  }

  /** Accounts whose limit is held. */
  get size(): number {
    return this.#held.size;
  }

  /** The account's cell, which stays its own until `release` was called as often; or NO_CELL. */
  hold(account: string, plan: RatePlan): number {
    const known = this.#held.get(account);
    const cell = known?.cell ?? this.#free.pop() ?? NO_CELL;
    if (cell === NO_CELL) return NO_CELL;
    if (known === undefined) this.#held.set(account, { cell, count: 1 });
    else known.count += 1;
    this.#limits.hold(account, plan, cell);
    return cell;
  }

  /** With the last holder, the cell is free; no other thread may charge it any more. */
  release(account: string): void {
    const held = this.#held.get(account);
    if (held === undefined) return;
    held.count -= 1;
    if (held.count > 0) return;
    this.#held.delete(account);
    this.#free.push(held.cell);
    this.#limits.release(account);
  }
}
