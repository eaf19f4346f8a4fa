/**
 * Computes the leaders for a slot: pure functions without state or clock.
 *
 * They walk the leader windows from the slot on. A leader without a usable address is skipped; two
 * leaders behind one address are one target, because the connection is what counts. A leader is
 * sent to only if its window is near enough that it keeps the transaction.
 *
 * Every transaction goes to the configured number of leaders, the current one first: the next
 * leaders hold early transactions for their window, at no cost to what they grant then. With one
 * configured leader, two are used where windows meet: a delivery sent so late that it may reach the
 * current leader after its window goes to the next one as well.
 *
 *   slot     │  0  │  1  │  2  │  3  │  4  │
 *   leader   │           A           │  B  …
 *   1 leader │ A                 │A B│ B
 *                                └─ left ≤ round trip to B + what A needs
 *
 * Decision: docs/decisions/0020-always-the-configured-number-of-leaders.md
 */

import type { Plan, Target } from "../core/flow.ts";
import { SEND_SLOTS_AHEAD_MAX } from "../core/limits.ts";
import { PLAN_SLOTS_AHEAD_MAX } from "./limits.ts";

/** Measured leader times; a guess where nothing was measured. */
export interface LeaderTimes {
  roundTripMs(identity: string): number;
  /** Typical time from sending a delivery until the leader acknowledges it. */
  neededMs(identity: string): number;
  /** From 0 to 1: how reliably the leader is reached. */
  reliabilityOf(identity: string): number;
}

/** A leader below this is probably unreachable. */
const STANDING_MIN = 0.5;

export interface PlanInput {
  /** The current slot. */
  readonly slot: number;
  /** Time until the next slot begins. */
  readonly slotLeftMs: number;
  readonly slotTimeMs: number;
  /** How many leaders a transaction is fanned out to. */
  readonly leaders: number;
  /** Leaders whose connections are held open, including those of `leaders`. */
  readonly warmWindows: number;
  readonly schedule: { leaderAt(slot: number): string | null };
  /** The address of a usable leader; null otherwise. */
  readonly contacts: { address(identity: string): string | null };
  readonly times: LeaderTimes;
}

export interface Planned {
  readonly plan: Plan;
  /** Milliseconds until the plan changes within this slot; null: not in this slot. */
  readonly changesInMs: number | null;
}

/** The current plan; without targets if the schedule or the contacts are unknown. */
export function makePlan(input: PlanInput): Planned {
  const { slot, leaders } = input;
  const warm = walk(input);
  const dueInMs = leaders > 1 ? 0 : untilDueMs(input, warm);
  const count = dueInMs > 0 ? leaders : Math.max(leaders, 2);
  const send = warm.filter((target) => target.slot - slot <= SEND_SLOTS_AHEAD_MAX).slice(0, count);
  const changes = dueInMs > 0 && dueInMs < input.slotLeftMs;
  return { plan: { slot, send, warm }, changesInMs: changes ? dueInMs : null };
}

/**
 * The wanted number of leaders from the slot on, with the first slot of their window. Each probably
 * unreachable leader adds one substitute; at most twice the number in total.
 */
function walk(input: PlanInput): readonly Target[] {
  const { slot, leaders, warmWindows, schedule, contacts, times } = input;
  // The leader after the last target may be due as well.
  const wanted = Math.max(leaders, 2, warmWindows);
  const warm: Target[] = [];
  let before: string | null = null;
  let left = wanted;
  for (let ahead = 0; ahead <= PLAN_SLOTS_AHEAD_MAX && left > 0; ahead += 1) {
    const identity = schedule.leaderAt(slot + ahead);
    if (identity === null || identity === before) continue;
    before = identity;
    const address = contacts.address(identity);
    if (address === null || has(warm, address)) continue;
    warm.push({ identity, address, slot: slot + ahead });
    if (times.reliabilityOf(identity) >= STANDING_MIN) left -= 1;
    if (warm.length >= 2 * wanted) break;
  }
  return warm;
}

/**
 * Milliseconds for which the current leader suffices alone: the rest of its window, less the round
 * trip to the next leader and the time the current one needs. 0 or less: the next one is due.
 * Infinite without a current or a next leader.
 */
export function untilDueMs(input: PlanInput, warm: readonly Target[]): number {
  const { slot, slotLeftMs, slotTimeMs, times } = input;
  const [current, next] = warm;
  if (current === undefined || next === undefined || current.slot !== slot) {
    return Number.POSITIVE_INFINITY;
  }
  const leftMs = slotLeftMs + (endOf(input, current) - slot - 1) * slotTimeMs;
  return leftMs - times.roundTripMs(next.identity) - times.neededMs(current.identity);
}

/** The first slot after a window; leaders that share its address prolong it. */
function endOf({ schedule, contacts }: PlanInput, current: Target): number {
  for (let ahead = 1; ahead <= PLAN_SLOTS_AHEAD_MAX; ahead += 1) {
    const identity = schedule.leaderAt(current.slot + ahead);
    if (identity === null) return current.slot + ahead;
    if (identity !== current.identity && contacts.address(identity) !== current.address) {
      return current.slot + ahead;
    }
  }
  return current.slot + PLAN_SLOTS_AHEAD_MAX;
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
