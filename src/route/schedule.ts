/**
 * The leader of each slot for the previous, current and next epoch.
 *
 * An epoch of 432,000 slots is one array of small integers that index identities, under 1 MB, so a
 * lookup is two array reads.
 *
 * Decision: docs/decisions/0029-stake-from-the-schedule.md
 */

import { EPOCH_SLOTS_MAX, EPOCHS_MAX } from "../core/limits.ts";
import { RouteCounters } from "./counters.ts";

/** One epoch as returned by `getLeaderSchedule`. */
export interface EpochLeaders {
  readonly epoch: number;
  /** The epoch's first slot. */
  readonly firstSlot: number;
  /** How many slots the epoch has. */
  readonly slots: number;
  /** Identity in base58, and its slots relative to the epoch's first. */
  readonly leaders: ReadonlyMap<string, readonly number[] | Uint32Array>;
}

export interface Schedule {
  /** Adds an epoch or replaces the one with the same number; false if invalid. */
  setEpoch(epoch: EpochLeaders): boolean;
  /** Drops all epochs. */
  clear(): void;
  /** The leader's identity; null if the schedule is unknown. */
  leaderAt(slot: number): string | null;
  covers(slot: number): boolean;
  /** A leader's share of the newest epoch's slots, which are assigned by stake; 0 for none. */
  shareOf(identity: string): number;
  /** Numbers of the epochs held, ascending. */
  readonly epochs: readonly number[];
}

interface HeldEpoch {
  readonly epoch: number;
  readonly firstSlot: number;
  readonly slots: number;
  /** 1-based indexes into `identities`; 0 for a slot without a leader. */
  readonly places: Uint16Array | Uint32Array;
  readonly identities: readonly string[];
  readonly shares: ReadonlyMap<string, number>;
}

export function createSchedule(counters: RouteCounters = new RouteCounters()): Schedule {
  /** Ascending by epoch, at most EPOCHS_MAX. */
  let held: readonly HeldEpoch[] = [];

  function leaderAt(slot: number): string | null {
    for (const epoch of held) {
      const index = slot - epoch.firstSlot;
      if (index < 0 || index >= epoch.slots) continue;
      const place = epoch.places[index] ?? 0;
      return place === 0 ? null : (epoch.identities[place - 1] ?? null);
    }
    return null;
  }

  return {
    setEpoch(epoch) {
      const built = build(epoch, counters);
      if (built === null) {
        counters.epochsRejected += 1;
        return false;
      }
      counters.epochsSet += 1;
      held = [...held.filter((each) => each.epoch !== built.epoch), built]
        .sort((a, b) => a.epoch - b.epoch)
        .slice(-EPOCHS_MAX);
      return true;
    },
    clear() {
      held = [];
    },
    leaderAt,
    shareOf: (identity) => held.at(-1)?.shares.get(identity) ?? 0,
    covers: (slot) => leaderAt(slot) !== null,
    get epochs() {
      return held.map((each) => each.epoch);
    },
  };
}

function build(source: EpochLeaders, counters: RouteCounters): HeldEpoch | null {
  const { epoch, firstSlot, slots, leaders } = source;
  if (!isCount(epoch) || !isCount(firstSlot) || !isCount(slots)) return null;
  if (slots === 0 || slots > EPOCH_SLOTS_MAX || leaders.size > slots) return null;
  const places = leaders.size < 0xffff ? new Uint16Array(slots) : new Uint32Array(slots);
  const identities: string[] = [];
  const shares = new Map<string, number>();
  let filled = 0;
  for (const [identity, indexes] of leaders) {
    identities.push(identity);
    shares.set(identity, indexes.length / slots);
    for (const index of indexes) {
      if (!isCount(index) || index >= slots) {
        counters.scheduleIndexesInvalid += 1;
        continue;
      }
      places[index] = identities.length;
      filled += 1;
    }
  }
  return filled === 0 ? null : { epoch, firstSlot, slots, places, identities, shares };
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
