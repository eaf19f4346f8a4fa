/** Finds the built counterpart of a source file. */

import { join, sep } from "node:path";
import { describe, expect, it } from "vitest";
import { compiledPath } from "../../src/runtime/worker-entry.ts";

const path = (...parts: string[]): string => sep + join(...parts);

describe("the compiled path", () => {
  it("of a source folder is below dist, whatever lies above", () => {
    const folder = path("home", "src", "edge", "src", "decode");
    expect(compiledPath(folder, "a.js")).toBe(
      path("home", "src", "edge", "dist", "decode", "a.js"),
    );
  });

  it("of a built folder is in it", () => {
    const folder = path("opt", "src", "dist", "decode");
    expect(compiledPath(folder, "a.js")).toBe(path("opt", "src", "dist", "decode", "a.js"));
  });
});
