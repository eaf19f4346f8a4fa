/**
 * From a slot to the leaders that matter: a pure function, with no memory and no clock.
 *
 * It walks the windows from the slot on. A leader without a known address is passed over for the
 * next one; two leaders behind one address are one target, because the connection is what counts.
 * A leader is sent to only when its turn is near enough that it keeps what it gets.
 */

import type { Plan, Target } from "../core/flow.ts";
import { PLAN_SLOTS_AHEAD_MAX, SEND_SLOTS_AHEAD_MAX } from "../core/limits.ts";

export interface PlanInput {
  /** The slot in progress. */
  readonly slot: number;
  /** How many leaders a transaction is fanned out to. */
  readonly leaders: number;
  /** How many leaders' connections are held open, those of `leaders` included. */
  readonly warmWindows: number;
  readonly schedule: { leaderAt(slot: number): string | null };
  readonly contacts: { address(identity: string): string | null };
}

/** The plan for a slot; without targets where the schedule or the contacts are not known. */
export function makePlan(input: PlanInput): Plan {
  const { slot, leaders, schedule, contacts } = input;
  const wanted = Math.max(leaders, input.warmWindows);
  const warm: Target[] = [];
  let before: string | null = null;
  for (let ahead = 0; ahead <= PLAN_SLOTS_AHEAD_MAX && warm.length < wanted; ahead += 1) {
    const identity = schedule.leaderAt(slot + ahead);
    if (identity === null || identity === before) continue;
    before = identity;
    const address = contacts.address(identity);
    if (address === null || has(warm, address)) continue;
    warm.push({ identity, address, slot: slot + ahead });
  }
  const send = warm
    .filter((target) => target.slot - slot <= SEND_SLOTS_AHEAD_MAX)
    .slice(0, leaders);
  return { slot, send, warm };
}

/** Whether two plans name the same targets for the same slots. */
export function samePlan(a: Plan, b: Plan): boolean {
  return a.slot === b.slot && sameTargets(a.send, b.send) && sameTargets(a.warm, b.warm);
}

function sameTargets(a: readonly Target[], b: readonly Target[]): boolean {
  return a.length === b.length && a.every((target, index) => sameTarget(target, b[index]));
}

function sameTarget(a: Target, b: Target | undefined): boolean {
  return (
    b !== undefined && a.slot === b.slot && a.identity === b.identity && a.address === b.address
  );
}

function has(targets: readonly Target[], address: string): boolean {
  return targets.some((target) => target.address === address);
}
