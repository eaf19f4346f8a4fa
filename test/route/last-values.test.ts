import { describe, expect, it } from "vitest";
import { LastValues } from "../../src/route/last-values.ts";
import { createRng } from "../support/rng.ts";

function all(values: LastValues): readonly number[] {
  return Array.from({ length: values.count }, (_, index) => values.at(index));
}

describe("last values", () => {
  it("are sorted for any order of arrival", () => {
    const rng = createRng(7);
    const values = new LastValues(12);
    const pushed: number[] = [];
    for (let round = 0; round < 2_000; round += 1) {
      const value = rng.below(20);
      values.push(value);
      pushed.push(value);
      expect(all(values)).toEqual(pushed.slice(-12).toSorted((a, b) => a - b));
    }
  });

  it("are empty at first and after clear()", () => {
    const values = new LastValues(3);
    expect([values.count, values.middle, values.at(0), values.full]).toEqual([0, -1, -1, false]);
    for (const value of [5, 9, 7, 8]) values.push(value);
    expect([values.count, values.middle, values.at(0), values.full]).toEqual([3, 1, 7, true]);
    values.clear();
    expect([values.count, values.at(0)]).toEqual([0, -1]);
    values.push(2);
    expect(all(values)).toEqual([2]);
  });

  it("have the lower of the two middle values as their median", () => {
    const values = new LastValues(4);
    for (const value of [4, 3, 2, 1]) values.push(value);
    expect(values.at(values.middle)).toBe(2);
  });
});
