import { describe, expect, it } from "vitest";
import { createStringColumn } from "../../src/observe/string-column.ts";
import { fc } from "../support/properties.ts";

const PAGE_SIZE = 1024;

describe("a column of strings", () => {
  it("is empty wherever nothing was set", () => {
    const column = createStringColumn();
    expect([0, 1, PAGE_SIZE, 1e9].map((index) => column.at(index))).toEqual(["", "", "", ""]);
    column.set(PAGE_SIZE + 1, "x");
    expect([0, PAGE_SIZE, PAGE_SIZE + 2, 2 * PAGE_SIZE + 1].map(column.at)).toEqual([
      "",
      "",
      "",
      "",
    ]);
  });

  it("keeps the places on both sides of a page's end apart", () => {
    const column = createStringColumn();
    const places = [0, PAGE_SIZE - 1, PAGE_SIZE, 2 * PAGE_SIZE - 1, 2 * PAGE_SIZE];
    for (const place of places) column.set(place, `at ${place}`);
    expect(places.map((place) => column.at(place))).toEqual(places.map((it) => `at ${it}`));
  });

  it("holds what a plain map would hold, over any order of writes", () => {
    const write = fc.tuple(fc.integer({ min: 0, max: 3 * PAGE_SIZE }), fc.string());
    fc.assert(
      fc.property(fc.array(write, { maxLength: 200 }), (writes) => {
        const column = createStringColumn();
        for (const [index, text] of writes) column.set(index, text);
        for (const [index, text] of new Map(writes)) expect(column.at(index)).toBe(text);
      }),
    );
  });
});
