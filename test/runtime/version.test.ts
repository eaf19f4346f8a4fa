import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { VERSION } from "../../src/runtime/version.ts";
import { ROOT } from "../support/source-tree.ts";

it("the version equals that of the package", () => {
  const [, written = ""] =
    /"version": "(\d+\.\d+\.\d+[^"]*)"/.exec(readFileSync(join(ROOT, "package.json"), "utf8")) ??
    [];
  expect(VERSION).toBe(written);
  expect(VERSION).not.toBe("");
});
