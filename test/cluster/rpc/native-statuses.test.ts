import { describe, expect, it } from "vitest";
import { readStatusColumns } from "../../../src/cluster/rpc/native-statuses.ts";

/** The layout: doubles, then flag bytes, then index, size and text of each error. */
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

describe("status columns of the native engine", () => {
  it("decode to one status per signature, with null for absent ones", () => {
    expect(readStatusColumns(columns([9, -1, 7, 8], [0, 0, 1]), 3)).toEqual({
      slot: 9,
      statuses: [
        null,
        { slot: 7, confirmed: false, error: null },
        { slot: 8, confirmed: true, error: null },
      ],
    });
  });

  it("share one object only between equal statuses", () => {
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

  it("assign errors by index and remove the node's JSON whitespace", () => {
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

  it("may be empty", () => {
    expect(readStatusColumns(columns([9], []), 0)).toEqual({ slot: 9, statuses: [] });
  });
});
