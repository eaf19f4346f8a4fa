/**
 * Which slot sources count after one of them went back.
 *
 * A source that works reports a new slot soon. It contradicts another one that went back with a
 * slot above all that this one had reported until then, and above where this one is now. Without
 * such a slot it says nothing: a late source repeats deleted slots, and one that hangs is silent.
 * Until it had the time, twice the usual gap between its node's events, or agrees, it counts as
 * before, and then no longer. If it contradicts only later, it is right after all. Sources that go
 * back within 10 s of each other went back together.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { SLOT_AGREE_DISTANCE } from "../core/limits.ts";
import { SLOT_BACK_TOGETHER_MS, SLOT_GAPS_MAX, SLOT_SOURCE_LIVE_MS } from "./limits.ts";
import type { SlotBack, SlotSourceEstimate } from "./slot-source.ts";

/** A source as a witness of where the cluster is. */
export interface Witness {
  readonly origin: string;
  readonly estimate: SlotSourceEstimate;
  /** Its position now; -1 for none. */
  readonly position: number;
}

/** Whether a source says nothing of where the cluster is, because another one went back. */
export function isOutdated(source: Witness, all: readonly Witness[], nowNs: number): boolean {
  return all.some((other) => {
    const back = recentBack(other, nowNs);
    if (back === null || other === source || other.position < 0) return false;
    if (isBackToo(source, back) || contradicts(source, other, back)) return false;
    return isNear(source.estimate.lastSlot, other) || nowNs > dueNs(source, all, back);
  });
}

/** Whether a source went back that another one contradicts. */
export function isContradicted(source: Witness, all: readonly Witness[], nowNs: number): boolean {
  const back = recentBack(source, nowNs);
  if (back === null) return false;
  return all.some(
    (other) => other !== source && !isBackToo(other, back) && contradicts(other, source, back),
  );
}

function recentBack({ estimate: { back } }: Witness, nowNs: number): SlotBack | null {
  return back !== null && nowNs - back.atNs <= SLOT_SOURCE_LIVE_MS * NS_PER_MS ? back : null;
}

/** Whether a source went back, too, shortly before or since. */
function isBackToo({ estimate: { back } }: Witness, { sinceNs }: SlotBack): boolean {
  return back !== null && back.atNs >= sinceNs - SLOT_BACK_TOGETHER_MS * NS_PER_MS;
}

/** Whether a source reports a slot that the one that went back had not reached, nor has now. */
function contradicts(
  { estimate }: Witness,
  { estimate: { begunSlot } }: Witness,
  { sinceNs, fromSlot }: SlotBack,
): boolean {
  const isSince = (estimate.progressNs ?? sinceNs) > sinceNs;
  const reached = Math.max(fromSlot, begunSlot + SLOT_AGREE_DISTANCE);
  return isSince && estimate.begunSlot > reached;
}

function isNear(slot: number, { position }: Witness): boolean {
  return Math.abs(slot - position) <= SLOT_AGREE_DISTANCE;
}

/** When a source's node should have reported a new slot, if the cluster had not gone back. */
function dueNs(source: Witness, all: readonly Witness[], { sinceNs }: SlotBack): number {
  let gapNs = SLOT_SOURCE_LIVE_MS * NS_PER_MS;
  for (const { origin, estimate } of all) {
    if (origin === source.origin) gapNs = Math.min(gapNs, estimate.gapNs ?? gapNs);
  }
  return sinceNs + SLOT_GAPS_MAX * gapNs;
}
