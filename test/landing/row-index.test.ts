import { describe, expect, it } from "vitest";
import { NONE } from "../../src/landing/byte-store.ts";
import { RowIndex } from "../../src/landing/row-index.ts";
import { fc } from "../support/properties.ts";

function rowsOf(index: RowIndex, hash: number): number[] {
  const rows: number[] = [];
  for (let row = index.first(hash); row !== NONE; row = index.after(row)) rows.push(row);
  return rows;
}

describe("the index of rows", () => {
  it("finds nothing at first", () => {
    expect(rowsOf(new RowIndex(5), 3)).toEqual([]);
  });

  it("accepts hashes of any sign", () => {
    const index = new RowIndex(5);
    for (const [row, hash] of [-1, 2 ** 31 - 1, -(2 ** 31), 0].entries()) index.add(hash, row);
    expect(rowsOf(index, -(2 ** 31))).toContain(2);
  });

  it("keeps every row that was added and not removed, and no other", () => {
    const step = fc.record({ row: fc.nat({ max: 15 }), hash: fc.nat({ max: 40 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const index = new RowIndex(16);
        const held = new Map<number, number>();
        for (const { row, hash } of steps) {
          const old = held.get(row);
          if (old === undefined) {
            index.add(hash, row);
            held.set(row, hash);
          } else {
            index.remove(old, row);
            held.delete(row);
          }
        }
        for (const [row, hash] of held) expect(rowsOf(index, hash)).toContain(row);
        const found = new Set(Array.from({ length: 16 }, (_, hash) => rowsOf(index, hash)).flat());
        expect(found.size).toBe(held.size);
      }),
    );
  });
});
