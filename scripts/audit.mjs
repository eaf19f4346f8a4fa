/**
 * Holds native/Cargo.lock against RustSec's advisory database, without asking the network: the
 * environment variable ADVISORY_DB names a copy of it, https://github.com/RustSec/advisory-db.
 * Exits with 1 when a crate is known to be vulnerable, or when something for the answer is missing.
 */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const lockfile = join(dirname(dirname(fileURLToPath(import.meta.url))), "native", "Cargo.lock");
const { ADVISORY_DB: database } = process.env;

/** What has to be there first; null when it all is. */
function missing() {
  if (database === undefined || database === "") {
    return (
      "ADVISORY_DB must name a copy of RustSec's advisory database: " +
      "git clone --depth 1 https://github.com/RustSec/advisory-db"
    );
  }
  if (!existsSync(join(database, "crates"))) return `${database} holds no folder crates`;
  const { status } = spawnSync("cargo", ["audit", "--version"]);
  return status === 0 ? null : "cargo-audit is missing: cargo install cargo-audit --locked";
}

const what = missing();
if (what === null) {
  const options = ["--db", database, "--no-fetch", "--file", lockfile];
  process.exitCode = spawnSync("cargo", ["audit", ...options], { stdio: "inherit" }).status ?? 1;
} else {
  process.stderr.write(`audit: ${what}\n`);
  process.exitCode = 1;
}
