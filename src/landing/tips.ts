/**
 * Sums of the tips of accepted and of landed transactions, by plan.
 *
 * Plans are few, but their names may change any number of times while an edge runs: those beyond
 * `TIP_PLANS_MAX` are counted together, as `other`.
 *
 * Hot path: one look-up and one addition.
 */

import { TIP_PLANS_MAX } from "./limits.ts";

/** Lamports. */
export interface PlanTips {
  accepted: number;
  landed: number;
}

/** The name under which further plans are counted. */
const OTHER_PLANS = "other";

export class TipTotals {
  readonly #byPlan = new Map<string, PlanTips>();

  /** By the plan's name. */
  get byPlan(): ReadonlyMap<string, Readonly<PlanTips>> {
    return this.#byPlan;
  }

  accepted(plan: string, lamports: number): void {
    this.#of(plan).accepted += lamports;
  }

  landed(plan: string, lamports: number): void {
    this.#of(plan).landed += lamports;
  }

  #of(plan: string): PlanTips {
    const known = this.#byPlan.get(plan);
    if (known !== undefined) return known;
    if (this.#byPlan.size >= TIP_PLANS_MAX && plan !== OTHER_PLANS) return this.#of(OTHER_PLANS);
    const tips: PlanTips = { accepted: 0, landed: 0 };
    this.#byPlan.set(plan, tips);
    return tips;
  }
}
