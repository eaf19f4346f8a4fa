/**
 * Builds the leader program before the suite, with the TPU server of the release that the project
 * of `vitest.agave.config.ts` names. Its target folder is outside the project, in the user's cache
 * or where CARGO_TARGET_DIR says, so that a machine compiles the dependencies once.
 */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

interface Release {
  /** The folder of the package. */
  readonly folder: string;
  readonly program: string;
  /** The Rust that its crates name: where the default is older, a nightly one builds it. */
  readonly nightlyBelow: readonly [number, number] | null;
}

/** 4.2 compiles with the Rust of this project (1.95); 4.4 names 1.98.1. Checked 2026-11. */
const RELEASES: Readonly<Record<string, Release>> = {
  "4.2": { folder: "leader", program: "agave-leader", nightlyBelow: null },
  "4.4": { folder: "leader-4.4", program: "agave-leader-4-4", nightlyBelow: [1, 98] },
};

function releaseOf(version: string | undefined): Release {
  const release = RELEASES[version ?? "4.2"];
  if (release === undefined) throw new Error(`no leader with Agave ${version}`);
  return release;
}

function targetFolder(): string {
  const { CARGO_TARGET_DIR: chosen, XDG_CACHE_HOME: cache } = process.env;
  return chosen ?? join(cache ?? join(homedir(), ".cache"), "touchdown", "agave-target");
}

/** The path of the built program of this project's release. */
export function leaderProgram(): string {
  return join(targetFolder(), "release", releaseOf(process.env["AGAVE_RELEASE"]).program);
}

/** Builds Agave's clients beside it, for the tests that use them. */
export function buildClient(): void {
  const { status } = spawnSync("cargo", ["build", "--release", "--locked"], {
    cwd: fileURLToPath(new URL("client", import.meta.url)),
    env: { ...process.env, CARGO_TARGET_DIR: targetFolder() },
    stdio: "inherit",
  });
  if (status !== 0) throw new Error("Agave's clients were not built");
}

/** Whether the default cargo is older than this release of Rust. */
function isOlder([major, minor]: readonly [number, number]): boolean {
  const { stdout } = spawnSync("cargo", ["--version"], { encoding: "utf8" });
  const [, ownMajor, ownMinor] = /^cargo (\d+)\.(\d+)/.exec(stdout ?? "") ?? [];
  return Number(ownMajor) === major && Number(ownMinor) < minor;
}

export function setup(project: TestProject): void {
  const { folder, program, nightlyBelow } = releaseOf(project.config.env["AGAVE_RELEASE"]);
  // Nightlies compile these crates before the release that they name.
  const isNightly = nightlyBelow !== null && isOlder(nightlyBelow);
  const args = ["build", "--release", "--locked"];
  const build = spawnSync(
    "cargo",
    isNightly ? ["+nightly", ...args, "--ignore-rust-version"] : args,
    {
      cwd: fileURLToPath(new URL(folder, import.meta.url)),
      env: { ...process.env, CARGO_TARGET_DIR: targetFolder() },
      stdio: "inherit",
    },
  );
  if (build.status !== 0 || !existsSync(join(targetFolder(), "release", program))) {
    const newest = nightlyBelow === null ? "" : `, ${nightlyBelow.join(".")} or a nightly one`;
    throw new Error(`${program} was not built: it needs cargo and a Rust toolchain${newest}`);
  }
}
