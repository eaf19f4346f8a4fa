import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { createCalendar } from "../../src/sandbox/cluster-slots.ts";
import {
  ALPENGLOW_DEFAULTS,
  type AlpenglowOptions,
  createTimeline,
  type SlotStep,
  type Step,
  type TimelineOptions,
} from "../../src/sandbox/cluster-timeline.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const SLOT_MS = 200;
const FIRST_SLOT = 128;
/** Nothing but slots with blocks. */
const CALM: AlpenglowOptions = {
  skipTimeoutMs: 500,
  stallShare: 0,
  stallMs: 3_000,
  twoBanksShare: 0,
  behindShare: 0,
  migration: null,
};

type Given = Partial<Omit<TimelineOptions, "alpenglow">> & {
  readonly alpenglow?: Partial<AlpenglowOptions>;
};

/** The first steps of a timeline, with their times in milliseconds. */
function steps(count: number, given: Given = {}): readonly (Step & { readonly ms: number })[] {
  const clock = createFakeClock();
  const { seed = 1, skipShare = 0 } = given;
  const identities = ["A", "B", "C"];
  const calendar = createCalendar(clock, {
    ...{ identities, slotMs: SLOT_MS, skipShare, epochSlots: 64, seed },
  });
  const startNs = clock.nowNs();
  const timeline = createTimeline({
    ...{ consensus: "alpenglow", calendar, slotMs: SLOT_MS, skipShare, seed },
    ...given,
    alpenglow: { ...CALM, ...given.alpenglow },
  });
  return Array.from({ length: count }, () => {
    const nextNs = timeline.nextNs;
    const step = timeline.take();
    expect(step.atNs).toBe(nextNs);
    return { ...step, ms: Math.round((step.atNs - startNs) / NS_PER_MS) };
  });
}

const slotsOf = (all: readonly Step[]): readonly SlotStep[] =>
  all.filter((step) => step.kind === "slot");

describe("a timeline with Tower BFT", () => {
  it("has a slot at each slot time, skipped or not", () => {
    const taken = steps(1_000, { consensus: "tower_bft", skipShare: 0.2 });
    expect(taken.map(({ ms }) => ms)).toEqual(taken.map((_, index) => index * SLOT_MS));
    const slots = slotsOf(taken);
    expect(slots.map(({ slot }) => slot)).toEqual(taken.map((_, index) => FIRST_SLOT + index));
    expect(new Set(slots.map(({ phase }) => phase))).toEqual(new Set(["tower_bft"]));
    const skipped = slots.filter(({ isSkipped }) => isSkipped).length;
    expect(Math.abs(skipped - 200)).toBeLessThan(50);
  });

  it("has no event of Alpenglow", () => {
    const alpenglow = { stallShare: 1, twoBanksShare: 1, behindShare: 1 };
    for (const step of steps(100, { consensus: "tower_bft", alpenglow })) {
      expect(step).toMatchObject({ kind: "slot", isGivenUp: false, isBehind: false });
    }
  });
});

describe("a timeline with Alpenglow", () => {
  it("is equal for equal seeds, and different for others", () => {
    const text = (seed: number): string =>
      JSON.stringify(steps(500, { seed, skipShare: 0.2, alpenglow: ALPENGLOW_DEFAULTS }));
    expect(text(7)).toBe(text(7));
    expect(text(7)).not.toBe(text(8));
  });

  it("skips the four slots of a window together, after the timeout", () => {
    const slots = slotsOf(steps(400, { skipShare: 0.2 }));
    let skipped = 0;
    for (let index = 0; index + 4 < slots.length; index += 4) {
      const window = slots.slice(index, index + 5);
      const [first] = window;
      const isSkipped = first?.isSkipped ?? false;
      if (isSkipped) skipped += 1;
      expect(window.slice(0, 4).map((each) => each.isSkipped)).toEqual(Array(4).fill(isSkipped));
      const sinceMs = window.map(({ atNs }) => (atNs - (first?.atNs ?? 0)) / NS_PER_MS);
      expect(sinceMs).toEqual(isSkipped ? [0, 500, 500, 500, 500] : [0, 200, 400, 600, 800]);
    }
    expect(skipped).toBeGreaterThan(10);
    expect(skipped).toBeLessThan(30);
  });

  it("ends the last slot on time in a stall, after which the next window begins", () => {
    const taken = steps(400, { alpenglow: { stallShare: 0.1 } });
    const stalls = taken.flatMap(({ kind }, index) => (kind === "stall" ? index : []));
    expect(stalls.length).toBeGreaterThan(3);
    for (const index of stalls) {
      const [before, stall, after] = taken.slice(index - 1, index + 2);
      expect(before).toMatchObject({ kind: "slot", ms: (stall?.ms ?? 0) - SLOT_MS });
      expect(after).toMatchObject({ kind: "slot", ms: (stall?.ms ?? 0) + 3_000 });
    }
    const slots = slotsOf(taken).map(({ slot }) => slot);
    expect(slots).toEqual(slots.map((_, index) => FIRST_SLOT + index));
  });

  it("gives up the first bank of some windows half way through their first slot", () => {
    const taken = steps(400, { alpenglow: { twoBanksShare: 0.3 } });
    let count = 0;
    for (const [index, step] of taken.entries()) {
      const after = taken[index + 1];
      if (step.kind !== "slot" || !step.isGivenUp) {
        expect(after?.kind).not.toBe("second_bank");
        continue;
      }
      count += 1;
      expect(step.slot % 4).toBe(0);
      expect(after).toMatchObject({ kind: "second_bank", ms: step.ms + SLOT_MS / 2 });
    }
    expect(count).toBeGreaterThan(10);
  });

  it("is behind in a share of its slots", () => {
    const slots = slotsOf(steps(1_000, { alpenglow: { behindShare: 0.2 } }));
    const behind = slots.filter(({ isBehind }) => isBehind).length;
    expect(Math.abs(behind - 200)).toBeLessThan(50);
  });
});

describe("a timeline with a migration", () => {
  const migration = { afterSlots: 10, voteOnlySlots: 20 };

  it("uses the slot numbers after the genesis block again", () => {
    const taken = steps(60, { alpenglow: { migration } });
    const phases = slotsOf(taken).map(({ phase }) => phase);
    expect(phases.slice(0, 10)).toEqual(Array(10).fill("tower_bft"));
    expect(phases.slice(10, 30)).toEqual(Array(20).fill("vote_only"));
    expect(phases.slice(30)).toEqual(Array(29).fill("alpenglow"));
    const genesisSlot = FIRST_SLOT + 9;
    expect(taken[30]).toMatchObject({ kind: "migration", genesisSlot, ms: 30 * SLOT_MS });
    expect(taken[31]).toMatchObject({ kind: "slot", slot: genesisSlot + 1, ms: 30 * SLOT_MS });
    expect(taken[32]).toMatchObject({ kind: "slot", slot: genesisSlot + 2, ms: 31 * SLOT_MS });
  });

  it("takes the newest slot with a block before those slots for the genesis block", () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const taken = steps(31, { seed, skipShare: 0.5, alpenglow: { migration } });
      const blocks = slotsOf(taken).filter(
        ({ phase, isSkipped }) => phase === "tower_bft" && !isSkipped,
      );
      const genesisSlot = blocks.at(-1)?.slot ?? FIRST_SLOT - 1;
      expect(taken.at(-1)).toMatchObject({ kind: "migration", genesisSlot });
    }
  });
});
