import { expect, it } from "vitest";
import { SLOT_EXTRAPOLATION_MAX, SLOT_PAST_KEPT } from "../../src/route/limits.ts";
import { SlotPast } from "../../src/route/slot-past.ts";

const MS = 1_000_000;
const SLOT_MS = 400;

function setUp(...announced: readonly (readonly [slot: number, atMs: number])[]) {
  const past = new SlotPast();
  for (const [slot, atMs] of announced) past.record(slot, atMs * MS);
  return { past, at: (ms: number) => past.at(ms * MS, SLOT_MS) };
}

it("returns the last announced slot, and extrapolated slots after it", () => {
  const { at } = setUp([100, 0], [101, 400]);
  expect([0, 399, 400, 799, 800, 1_200].map(at)).toEqual([100, 100, 101, 101, 102, 103]);
});

it("returns no slot before its announcement, even if the one before was long", () => {
  const { at } = setUp([100, 0], [101, 500], [104, 2_000]);
  expect([450, 499, 500, 1_400, 1_900, 1_999].map(at)).toEqual([100, 100, 101, 103, 103, 103]);
});

it("ignores announcements of slots that are not later, until it is cleared", () => {
  const { past, at } = setUp([100, 0], [99, 100], [100, 200]);
  expect(at(399)).toBe(100);
  past.clear();
  expect(at(399)).toBeNull();
  past.record(50, 300 * MS);
  expect(at(399)).toBe(50);
});

it("returns null before its oldest announcement, and too long after the latest", () => {
  const { past, at } = setUp([100, 1_000]);
  const extrapolationSlotMs = SLOT_EXTRAPOLATION_MAX * SLOT_MS;
  expect([999, 1_000 + extrapolationSlotMs].map(at)).toEqual([null, 100 + SLOT_EXTRAPOLATION_MAX]);
  expect(at(1_000 + extrapolationSlotMs + SLOT_MS)).toBeNull();
  for (let n = 1; n <= SLOT_PAST_KEPT; n += 1) past.record(100 + n, (1_000 + n * SLOT_MS) * MS);
  expect([1_000 + SLOT_MS - 1, 1_000 + SLOT_MS].map(at)).toEqual([null, 101]);
});
