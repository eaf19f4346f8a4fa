import { describe, expect, it } from "vitest";
import { readStatusColumns } from "../../../src/cluster/rpc/native-statuses.ts";

/** Doubles, then bytes; then index, size and text of each error. */
function columns(
  numbers: readonly number[],
  flags: readonly number[],
  errors: readonly (readonly [number, string])[] = [],
): Uint8Array {
  const tail = errors.flatMap(([index, text]) => [
    doubles([index, text.length]),
    Buffer.from(text),
  ]);
  return Uint8Array.from(Buffer.concat([doubles(numbers), Buffer.from(flags), ...tail]));
}

function doubles(numbers: readonly number[]): Buffer {
  return Buffer.from(Float64Array.from(numbers).buffer);
}

describe("statuses in columns", () => {
  it("become the statuses of each signature, absent ones null", () => {
    expect(readStatusColumns(columns([9, -1, 7, 8], [0, 0, 1]), 3)).toEqual({
      slot: 9,
      statuses: [
        null,
        { slot: 7, confirmed: false, error: null },
        { slot: 8, confirmed: true, error: null },
      ],
    });
  });

  it("share a record only where they are alike in all", () => {
    const bytes = columns([9, 7, 7, 7, -1, 7, 7, 8], [1, 1, 0, 0, 0, 0, 0], [[4, '"a"']]);
    const { statuses } = readStatusColumns(bytes, 7);
    expect(statuses).toEqual([
      { slot: 7, confirmed: true, error: null },
      { slot: 7, confirmed: true, error: null },
      { slot: 7, confirmed: false, error: null },
      null,
      { slot: 7, confirmed: false, error: '"a"' },
      { slot: 7, confirmed: false, error: null },
      { slot: 8, confirmed: false, error: null },
    ]);
    expect(statuses[0]).toBe(statuses[1]);
  });

  it("carry errors by their place, without the node's own spaces", () => {
    const bytes = columns([9, 7, 8], [1, 1], [[1, '{ "a": [1, 2] }']]);
    const { statuses } = readStatusColumns(bytes, 2);
    expect(statuses.map((status) => status?.error)).toEqual([null, '{"a":[1,2]}']);
    const both = columns(
      [9, 7, 8],
      [1, 1],
      [
        [0, '"x"'],
        [1, '"AccountInUse"'],
      ],
    );
    const read = readStatusColumns(both, 2).statuses;
    expect(read.map((status) => status?.error)).toEqual(['"x"', '"AccountInUse"']);
  });

  it("may be those of no signature", () => {
    expect(readStatusColumns(columns([9], []), 0)).toEqual({ slot: 9, statuses: [] });
  });
});
