/**
 * Builds the leader program before the suite. Its target folder is outside the project, in the
 * user's cache or where CARGO_TARGET_DIR says, so that a machine compiles the dependencies once.
 */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const crate = fileURLToPath(new URL("./leader", import.meta.url));

function targetFolder(): string {
  const { CARGO_TARGET_DIR: chosen, XDG_CACHE_HOME: cache } = process.env;
  return chosen ?? join(cache ?? join(homedir(), ".cache"), "touchdown", "agave-target");
}

/** The path of the built program. */
export function leaderProgram(): string {
  return join(targetFolder(), "release", "agave-leader");
}

export function setup(): void {
  const build = spawnSync("cargo", ["build", "--release", "--locked"], {
    cwd: crate,
    env: { ...process.env, CARGO_TARGET_DIR: targetFolder() },
    stdio: "inherit",
  });
  if (build.status !== 0 || !existsSync(leaderProgram())) {
    throw new Error("the Agave leader was not built: cargo and a Rust toolchain are needed");
  }
}
