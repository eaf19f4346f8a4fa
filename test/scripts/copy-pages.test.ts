import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ROOT } from "../support/source-tree.ts";

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-pages-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

it("lays uPlot's licence beside uPlot", () => {
  execFileSync(process.execPath, [join(ROOT, "scripts", "copy-pages.mjs"), folder]);
  const copied = (name: string): Buffer => readFileSync(join(folder, "vendor", name));
  expect(copied("uPlot.iife.min.js").length).toBeGreaterThan(1_000);
  expect(copied("uPlot.LICENSE.txt").toString()).toBe(
    readFileSync(join(ROOT, "node_modules", "uplot", "LICENSE"), "utf8"),
  );
  expect(copied("uPlot.LICENSE.txt").toString()).toMatch(/MIT License/);
});
