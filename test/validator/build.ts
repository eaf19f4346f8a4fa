/**
 * Builds `solana-test-validator` from Anza's crate, once a machine: half an hour on two cores. It
 * is installed into the user's cache, or into CARGO_INSTALL_ROOT.
 */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** The newest release that the Rust of this project (1.95) compiles, 2026-11. */
const VERSION = "4.2.2";

function root(): string {
  const { CARGO_INSTALL_ROOT: chosen, XDG_CACHE_HOME: cache } = process.env;
  return chosen ?? join(cache ?? join(homedir(), ".cache"), "touchdown", `validator-${VERSION}`);
}

/** The path of the built program. */
export function validatorProgram(): string {
  return join(root(), "bin", "solana-test-validator");
}

/** Builds it where it is missing. @throws Error naming the requirements when the build fails */
export function setup(): void {
  if (existsSync(validatorProgram())) return;
  const crate = ["agave-validator", "--version", VERSION, "--bin", "solana-test-validator"];
  const args = ["install", ...crate, "--locked", "--root", root()];
  const build = spawnSync("cargo", args, { stdio: "inherit" });
  if (build.status !== 0) {
    throw new Error(
      "solana-test-validator was not built: it needs cargo with Rust 1.95, and from Debian the " +
        "packages clang, libclang-dev, libudev-dev and protobuf-compiler",
    );
  }
}
