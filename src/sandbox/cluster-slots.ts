/**
 * The simulated cluster's calendar: the current slot, its leader, and whether it is skipped.
 *
 * Everything is a function of the seed and the slot number: past and future need no storage, and
 * two runs with one seed are identical.
 */

import { type Clock, NS_PER_MS } from "../core/clock.ts";

/** Slots of a leader window. Agave `leader-schedule`, 2026-11. */
export const WINDOW_SLOTS = 4;

export interface CalendarOptions {
  /** Identities of the leaders, base58. */
  readonly identities: readonly string[];
  readonly slotMs: number;
  /** Share of slots without a block, 0 to 1. */
  readonly skipShare: number;
  /** Slots of an epoch, a multiple of four. */
  readonly epochSlots: number;
  readonly seed: number;
}

export interface Calendar {
  /** The slot at a time; slots begin with the third epoch, at the time of creation. */
  slotAt(nowNs: number): number;
  /** Start of a slot, on `Clock.nowNs`. */
  startNs(slot: number): number;
  leaderAt(slot: number): string;
  isSkipped(slot: number): boolean;
  epochOf(slot: number): number;
  /** Slot indexes within the epoch by identity, as `getLeaderSchedule` returns them. */
  leadersOf(epoch: number): Record<string, number[]>;
  readonly firstSlot: number;
  readonly epochSlots: number;
}

export function createCalendar(clock: Clock, options: CalendarOptions): Calendar {
  const { identities, slotMs, skipShare, epochSlots, seed } = options;
  if (identities.length === 0) throw new RangeError("a cluster needs at least one leader");
  if (epochSlots <= 0 || epochSlots % WINDOW_SLOTS !== 0) {
    throw new RangeError(`an epoch of ${epochSlots} slots does not consist of whole windows`);
  }
  const originNs = clock.nowNs();
  const firstSlot = 2 * epochSlots;
  const slotNs = slotMs * NS_PER_MS;

  function leaderAt(slot: number): string {
    const window = Math.floor(slot / WINDOW_SLOTS);
    const identity = identities[mix(seed, window) % identities.length];
    if (identity === undefined) throw new RangeError(`no leader for slot ${slot}`);
    return identity;
  }

  return {
    slotAt: (nowNs) => firstSlot + Math.max(0, Math.floor((nowNs - originNs) / slotNs)),
    startNs: (slot) => originNs + (slot - firstSlot) * slotNs,
    leaderAt,
    isSkipped: (slot) => randomShare(seed + 1, slot) < skipShare,
    epochOf: (slot) => Math.floor(slot / epochSlots),
    leadersOf(epoch) {
      const leaders: Record<string, number[]> = {};
      for (let index = 0; index < epochSlots; index += 1) {
        const identity = leaderAt(epoch * epochSlots + index);
        const indexes = leaders[identity] ?? [];
        indexes.push(index);
        leaders[identity] = indexes;
      }
      return leaders;
    },
    firstSlot,
    epochSlots,
  };
}

/** A pseudorandom number from 0 to below 1 from two numbers. */
export function randomShare(seed: number, value: number): number {
  return mix(seed, value) / 2 ** 32;
}

/** A pseudorandom 32-bit number from two numbers (the finalizer of MurmurHash3). */
function mix(seed: number, value: number): number {
  let hash = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(value + 1, 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
