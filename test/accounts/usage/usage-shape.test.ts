import { expect, it } from "vitest";
import {
  USAGE_SLOT_BOUNDS,
  USAGE_WIRE_BOUNDS_NS,
} from "../../../src/accounts/usage/usage-shape.ts";

it("usage buckets have rising bounds, from 10 us to 1 s, and one bound per slot up to 15", () => {
  const rising = (list: readonly number[]): boolean =>
    list.every((bound, at) => at === 0 || bound > (list[at - 1] ?? 0));
  expect(rising(USAGE_WIRE_BOUNDS_NS) && rising(USAGE_SLOT_BOUNDS)).toBe(true);
  expect([USAGE_WIRE_BOUNDS_NS[0], USAGE_WIRE_BOUNDS_NS.at(-1)]).toEqual([10_000, 1e9]);
  expect(USAGE_SLOT_BOUNDS.slice(0, 16)).toEqual(Array.from({ length: 16 }, (_, at) => at));
});
