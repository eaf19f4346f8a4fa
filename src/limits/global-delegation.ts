/**
 * Delegates global limits, which apply to all edges, to slots that ingress threads charge: those of
 * accounts with a cached key. A slot belongs to one account until it was released as often as it
 * was delegated.
 */

import type { RatePlan } from "./access-control.ts";
import { GLOBAL_LIMITS_MAX } from "./global-state.ts";
import { NO_LIMIT_SLOT } from "./thread-limit-states.ts";

/** The global limits; their state moves into the slot and back. */
export interface DelegatableLimits {
  /** Called again for each new plan. */
  delegate(account: string, plan: RatePlan, limitSlot: number): void;
  /** No other thread charges it any more. */
  release(account: string): void;
}

interface Delegated {
  readonly limitSlot: number;
  /** Number of `delegate` calls not yet released. */
  count: number;
}

export class GlobalDelegation {
  readonly #limits: DelegatableLimits;
  readonly #delegated = new Map<string, Delegated>();
  readonly #free = Array.from({ length: GLOBAL_LIMITS_MAX }, (_, index) => {
    return GLOBAL_LIMITS_MAX - 1 - index;
  });

  constructor(limits: DelegatableLimits) {
    this.#limits = limits;
  }

  /** Accounts whose limit is delegated. */
  get size(): number {
    return this.#delegated.size;
  }

  /** The account's slot, reserved until `release` was called as often; or NO_LIMIT_SLOT. */
  delegate(account: string, plan: RatePlan): number {
    const known = this.#delegated.get(account);
    const limitSlot = known?.limitSlot ?? this.#free.pop() ?? NO_LIMIT_SLOT;
    if (limitSlot === NO_LIMIT_SLOT) return NO_LIMIT_SLOT;
    if (known === undefined) this.#delegated.set(account, { limitSlot, count: 1 });
    else known.count += 1;
    this.#limits.delegate(account, plan, limitSlot);
    return limitSlot;
  }

  /** The last release frees the slot; no other thread may charge it any more. */
  release(account: string): void {
    const delegated = this.#delegated.get(account);
    if (delegated === undefined) return;
    delegated.count -= 1;
    if (delegated.count > 0) return;
    this.#delegated.delete(account);
    this.#free.push(delegated.limitSlot);
    this.#limits.release(account);
  }
}
