import { describe, expect, it } from "vitest";
import { assemble, assembleControl } from "../../src/config/config.ts";
import type { KeyPath } from "../../src/config/table.ts";
import { isReadBy, KEY_PATHS } from "../../src/config/table.ts";

/** Every key's value is its own path, so that a misplaced one is visible. */
function marked(asked: string[] = []) {
  // The values are markers instead of the keys' types; only their places matter here.
  return assemble((path: KeyPath) => {
    asked.push(path);
    return path as never;
  });
}

describe("the configuration's record", () => {
  it("holds every key that an edge reads once", () => {
    const asked: string[] = [];
    marked(asked);
    expect(asked.sort()).toEqual(KEY_PATHS.filter((path) => isReadBy("edge", path)).sort());
  });

  it("holds every key that the control process reads once, in a record of its own", () => {
    const asked: KeyPath[] = [];
    assembleControl((path: KeyPath) => {
      asked.push(path);
      return path as never;
    });
    expect(asked.sort()).toEqual(KEY_PATHS.filter((path) => isReadBy("control", path)).sort());
  });

  it("has each key in its section, under its name", () => {
    const places = Object.entries(marked()).flatMap(([section, value]) =>
      typeof value === "object" && value !== null
        ? Object.entries(value).map(([name, path]) => [`${section}.${name}`, String(path)] as const)
        : [[section, String(value)] as const],
    );
    for (const [place, path] of places) {
      const inSnakeCase = place.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      expect(inSnakeCase.replace(/_ms$/, "")).toBe(path);
    }
  });

  it("is frozen at every depth", () => {
    const record = marked();
    expect(Object.isFrozen(record)).toBe(true);
    expect(Object.isFrozen(record.http)).toBe(true);
  });
});
