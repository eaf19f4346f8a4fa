import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const script = fileURLToPath(new URL("../../scripts/build-native.mjs", import.meta.url));

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-cargo-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Builds where `cargo --version` does this, and where cargo can build nothing. */
function buildWith(version: string): { status: number | null; stdout: string } {
  const cargo = join(folder, "cargo");
  writeFileSync(cargo, `#!/bin/sh\n[ "$1" = --version ] || exit 101\n${version}\n`);
  chmodSync(cargo, 0o755);
  const PATH = [folder, process.env["PATH"]].join(delimiter);
  const env = { ...process.env, PATH, CARGO_TARGET_DIR: join(folder, "target") };
  return spawnSync(process.execPath, [script], { env, encoding: "utf8" });
}

describe("the build of the native engine", () => {
  it("says so and ends well where cargo is too old for it, or does not run", () => {
    for (const [version, why] of [
      ['echo "cargo 1.75.0 (1d8b05cdd 2023-11-20)"', "cargo is 1.75, 1.89 or newer is needed"],
      ['echo "cargo 0.99.0"', "cargo is 0.99, 1.89 or newer is needed"],
      // As rustup's does without a toolchain.
      ["exit 1", "cargo does not run"],
    ] as const) {
      const { status, stdout } = buildWith(version);
      expect(stdout).toMatch(`native engine: not built, because ${why}; the `);
      expect({ status, lines: stdout.split("\n").length }).toEqual({ status: 0, lines: 2 });
    }
  });

  it("fails where a cargo that is new enough fails", () => {
    for (const version of ["1.89.0", "1.100.0-nightly", "2.0.0"]) {
      const { status, stdout } = buildWith(`echo "cargo ${version}"`);
      expect(status).toBe(1);
      expect(stdout).toContain("the build failed");
    }
  });
});
