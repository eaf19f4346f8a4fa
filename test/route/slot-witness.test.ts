import { describe, expect, it } from "vitest";
import { SlotSourceEstimate } from "../../src/route/slot-source.ts";
import { isContradicted, isOutdated, type Witness } from "../../src/route/slot-witness.ts";

const MS = 1_000_000;
const SLOT_MS = 250;

interface Settable extends Witness {
  position: number;
}

function witness(origin: string, position = 100): Settable {
  return { origin, estimate: new SlotSourceEstimate(), position };
}

function report({ estimate }: Witness, slot: number, ms: number): void {
  estimate.observe("start", slot, ms * MS, SLOT_MS);
}

/** Sources at slot 100 at 0 ms, and the first of them at 63 at 1,000 ms, from 60 at 250 on. */
function setUp() {
  const [first, second] = [witness("a", 63), witness("b")];
  for (let slot = 80; slot <= 100; slot += 1) {
    report(first, slot, (slot - 100) * SLOT_MS);
    report(second, slot, (slot - 100) * SLOT_MS);
  }
  for (const at of [0, 1, 2, 3]) report(first, 60 + at, (at + 1) * SLOT_MS);
  const all = [first, second];
  const outdated = (ms: number) => isOutdated(second, all, ms * MS);
  const contradicted = (ms: number) => isContradicted(first, all, ms * MS);
  return { first, second, all, outdated, contradicted };
}

describe("a source after another one went back", () => {
  it("counts until it had twice its usual gap for a new slot, and after 4 s", () => {
    const { outdated, contradicted } = setUp();
    // The first slot from below came at 250 ms.
    expect([750, 751, 4_750, 5_001].map(outdated)).toEqual([false, true, true, false]);
    expect(contradicted(1_000)).toBe(false);
  });

  it("counts no longer once its last slot agrees", () => {
    const { second, outdated } = setUp();
    report(second, 62, 700);
    expect(outdated(700)).toBe(true);
  });

  it("contradicts with a new slot, also later, but not with an old one", () => {
    const { second, outdated, contradicted } = setUp();
    report(second, 100, 800);
    expect([outdated(1_000), contradicted(1_000)]).toEqual([true, false]);
    report(second, 101, 2_000);
    expect([outdated(2_000), contradicted(2_000)]).toEqual([false, true]);
    expect(contradicted(5_001)).toBe(false);
  });

  it("does not contradict with the end of the last slot", () => {
    const { second, outdated, contradicted } = setUp();
    second.estimate.observe("end", 100, 800 * MS, SLOT_MS);
    expect([outdated(1_000), contradicted(1_000)]).toEqual([true, false]);
  });

  it("does not contradict with a slot that the other one has reached since", () => {
    const { first, second, outdated, contradicted } = setUp();
    for (let at = 4; at < 45; at += 1) report(first, 60 + at, 1_000 + (at - 3) * 50);
    report(second, 103, 3_100);
    expect([outdated(3_100), contradicted(3_100)]).toEqual([true, false]);
    report(second, 109, 3_200);
    expect([outdated(3_200), contradicted(3_200)]).toEqual([false, true]);
  });

  it("is outdated by one that goes back more than 10 s later, and not by one sooner", () => {
    const outdatedBy = (fromMs: number): boolean => {
      const { first, second, all } = setUp();
      for (const at of [0, 1, 2, 3]) report(second, 60 + at, fromMs + at * SLOT_MS);
      second.position = 63;
      return isOutdated(first, all, (fromMs + 1_000) * MS);
    };
    // The first one went back at 1,000 ms.
    expect([11_000, 11_001].map(outdatedBy)).toEqual([false, true]);
  });

  it("counts if it went back, too, also before", () => {
    const { first, second, all } = setUp();
    for (const at of [0, 1, 2, 3]) report(second, 60 + at, 1_500 + at * SLOT_MS);
    expect(second.estimate.back?.fromSlot).toBe(100);
    expect(all.map((each) => isOutdated(each, all, 2_500 * MS))).toEqual([false, false]);
    report(first, 101, 2_600);
    expect(isContradicted(second, all, 2_600 * MS)).toBe(false);
  });

  it("is silent if another source of its node should have reported a slot", () => {
    const { second, all } = setUp();
    const polls = witness("b");
    report(polls, 92, -2_000);
    report(polls, 100, 0);
    // Without the other source it has 4 s.
    expect(isOutdated(polls, [...all, polls], 751 * MS)).toBe(true);
    const alone = all.filter((each) => each !== second);
    expect(isOutdated(polls, [...alone, polls], 4_250 * MS)).toBe(false);
    expect(isOutdated(polls, [...alone, polls], 4_251 * MS)).toBe(true);
  });

  it("counts if the other one has no position, as it is outdated itself", () => {
    const { first, outdated } = setUp();
    first.position = -1;
    expect(outdated(1_000)).toBe(false);
  });
});
