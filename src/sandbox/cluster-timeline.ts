/**
 * What happens in the simulated cluster, step by step, with either consensus.
 *
 * With Tower BFT slots pass by the clock, and each is skipped or not. With Alpenglow they do not:
 * the slots of a leader that is down are skipped together after a timeout, no slot passes in a
 * stall, and a leader may give up the first bank of its window for another in the same slot. A
 * cluster that migrates begins with Tower BFT; after some slots without transactions of clients,
 * those slots are deleted and their numbers are used again.
 *
 *   tower_bft ... | vote_only ... | migration | alpenglow, from the slot after the genesis block on
 *
 * Everything is a function of the seed: two runs with one seed are identical. The rules are those
 * of SIMD-0326 and SIMD-0384, and of Agave 4.4 (`votor`), checked 2026-11.
 */

import { NS_PER_MS } from "../core/clock.ts";
import { type Calendar, randomShare, WINDOW_SLOTS } from "./cluster-slots.ts";

export type Consensus = "tower_bft" | "alpenglow";

/** The state of the cluster's consensus; `vote_only`: blocks hold votes, nothing is confirmed. */
export type Phase = "tower_bft" | "vote_only" | "alpenglow";

export interface AlpenglowOptions {
  /** From the begin of a window whose leader is down until its four slots are skipped. */
  readonly skipTimeoutMs: number;
  /** Share of windows before which no slot passes, and for how long. */
  readonly stallShare: number;
  readonly stallMs: number;
  /** Share of windows whose first slot has two banks, of which the first is given up. */
  readonly twoBanksShare: number;
  /** Share of slots in which the node reports a `processed` slot below the `confirmed` one. */
  readonly behindShare: number;
  /** null: Alpenglow from the first slot on. */
  readonly migration: Migration | null;
}

export interface Migration {
  /** Slots of Tower BFT before the first that holds votes only. */
  readonly afterSlots: number;
  /** Slots that hold votes only. */
  readonly voteOnlySlots: number;
}

export const ALPENGLOW_DEFAULTS: AlpenglowOptions = {
  skipTimeoutMs: 500,
  stallShare: 0.002,
  stallMs: 4_000,
  twoBanksShare: 0.05,
  behindShare: 0.05,
  migration: null,
};

/** A slot begins. */
export interface SlotStep {
  readonly kind: "slot";
  readonly atNs: number;
  readonly slot: number;
  readonly phase: Phase;
  /** It has no block. */
  readonly isSkipped: boolean;
  /** Its first bank is given up. */
  readonly isGivenUp: boolean;
  /** The node reports `processed` below `confirmed`. */
  readonly isBehind: boolean;
}

export type Step =
  | SlotStep
  /** The bank of the slot in progress is given up for another one. */
  | { readonly kind: "second_bank"; readonly atNs: number }
  /** The slot in progress ends, and the next one does not begin. */
  | { readonly kind: "stall"; readonly atNs: number }
  /** The slots after the genesis block are deleted. */
  | { readonly kind: "migration"; readonly atNs: number; readonly genesisSlot: number };

export interface TimelineOptions {
  readonly consensus: Consensus;
  readonly alpenglow: AlpenglowOptions;
  readonly calendar: Pick<Calendar, "firstSlot" | "startNs" | "isSkipped">;
  readonly slotMs: number;
  /** Share of slots without a block; with Alpenglow, of windows without one. */
  readonly skipShare: number;
  readonly seed: number;
}

export interface Timeline {
  /** When the next step happens, on `Clock.nowNs`. */
  readonly nextNs: number;
  /** Returns the next step and moves on to the one after it. */
  take(): Step;
}

/** The part of a bank's slot that passes before its leader gives it up. */
const GIVEN_UP_AFTER = 0.5;
/** Random numbers of each kind of event. */
const SKIP = 1;
const STALL = 2;
const TWO_BANKS = 3;
const BEHIND = 4;

export function createTimeline(options: TimelineOptions): Timeline {
  const steps = stepsOf(options);
  let next = steps.next().value;
  return {
    get nextNs() {
      return next.atNs;
    },
    take() {
      const taken = next;
      next = steps.next().value;
      return taken;
    },
  };
}

function* stepsOf(options: TimelineOptions): Generator<Step, never> {
  const { firstSlot, startNs } = options.calendar;
  const { migration } = options.alpenglow;
  if (options.consensus === "tower_bft") return yield* towerSteps(options, firstSlot, null);
  if (migration === null) return yield* alpenglowSteps(options, firstSlot, startNs(firstSlot));
  const voteOnly = firstSlot + migration.afterSlots;
  const last = voteOnly + migration.voteOnlySlots;
  const genesisSlot = yield* towerSteps(options, voteOnly, last);
  const atNs = startNs(last);
  yield { kind: "migration", atNs, genesisSlot };
  return yield* alpenglowSteps(options, genesisSlot + 1, atNs);
}

/**
 * Slots by the clock up to `last`, without transactions from `voteOnly` on; null: for ever. Returns
 * the newest slot before `voteOnly` that has a block.
 */
function towerSteps(
  options: TimelineOptions,
  voteOnly: number,
  last: number,
): Generator<Step, number>;
function towerSteps(options: TimelineOptions, voteOnly: number, last: null): Generator<Step, never>;
function* towerSteps(
  { calendar }: TimelineOptions,
  voteOnly: number,
  last: number | null,
): Generator<Step, number> {
  let genesisSlot = calendar.firstSlot - 1;
  for (let slot = calendar.firstSlot; last === null || slot < last; slot += 1) {
    const isSkipped = calendar.isSkipped(slot);
    const isVoteOnly = last !== null && slot >= voteOnly;
    if (!isSkipped && !isVoteOnly) genesisSlot = slot;
    const phase = isVoteOnly ? "vote_only" : "tower_bft";
    const atNs = calendar.startNs(slot);
    yield { kind: "slot", atNs, slot, phase, isSkipped, isGivenUp: false, isBehind: false };
  }
  return genesisSlot;
}

function* alpenglowSteps(
  options: TimelineOptions,
  firstSlot: number,
  startNs: number,
): Generator<Step, never> {
  const { slotMs, skipShare, alpenglow, seed } = options;
  const slotNs = slotMs * NS_PER_MS;
  let atNs = startNs;
  let isSkipped = false;
  // Counted from the first one, because slot numbers may be used twice.
  for (let count = 0; ; count += 1) {
    const slot = firstSlot + count;
    const happens = (what: number, share: number): boolean =>
      randomShare(seed + what, count) < share;
    const isFirst = slot % WINDOW_SLOTS === 0;
    if (isFirst) {
      if (count > 0 && happens(STALL, alpenglow.stallShare)) {
        yield { kind: "stall", atNs };
        atNs += alpenglow.stallMs * NS_PER_MS;
      }
      isSkipped = happens(SKIP, skipShare);
    }
    const isGivenUp = isFirst && !isSkipped && happens(TWO_BANKS, alpenglow.twoBanksShare);
    const isBehind = !isSkipped && happens(BEHIND, alpenglow.behindShare);
    yield { kind: "slot", atNs, slot, phase: "alpenglow", isSkipped, isGivenUp, isBehind };
    if (isGivenUp) yield { kind: "second_bank", atNs: atNs + slotNs * GIVEN_UP_AFTER };
    if (!isSkipped) atNs += slotNs;
    // The slots of a leader that is down end together.
    else if (isFirst) atNs += alpenglow.skipTimeoutMs * NS_PER_MS;
  }
}
