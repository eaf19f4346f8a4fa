import { describe, expect, it } from "vitest";
import { assemble, assembleControl } from "../../src/config/config.ts";
import type { KeyPath } from "../../src/config/table.ts";
import { isReadBy, KEY_PATHS } from "../../src/config/table.ts";

/** The value of each key is the key's path, so that the test detects a misplaced one. */
function marked(pathsRead: string[] = []) {
  // The values are markers instead of the keys' types; only their positions matter here.
  return assemble((path: KeyPath) => {
    pathsRead.push(path);
    return path as never;
  });
}

describe("configuration record", () => {
  it("contains each key that an edge reads once", () => {
    const pathsRead: string[] = [];
    marked(pathsRead);
    expect(pathsRead.sort()).toEqual(KEY_PATHS.filter((path) => isReadBy("edge", path)).sort());
  });

  it("contains each key that the control process reads once, in a separate record", () => {
    const pathsRead: KeyPath[] = [];
    assembleControl((path: KeyPath) => {
      pathsRead.push(path);
      return path as never;
    });
    expect(pathsRead.sort()).toEqual(KEY_PATHS.filter((path) => isReadBy("control", path)).sort());
  });

  it("places each key in its section under its camel-case name", () => {
    const placesOf = (record: object, start: string): (readonly [string, string])[] =>
      Object.entries(record).flatMap(([name, value]) =>
        typeof value === "object" && value !== null
          ? placesOf(value, `${start}${name}.`)
          : [[start + name, String(value)] as const],
      );
    for (const [place, path] of placesOf(marked(), "")) {
      const inSnakeCase = place.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      expect(inSnakeCase.replace(/_ms$/, "")).toBe(path);
    }
  });

  it("is deeply frozen", () => {
    const record = marked();
    expect(Object.isFrozen(record)).toBe(true);
    expect(Object.isFrozen(record.http)).toBe(true);
  });
});
