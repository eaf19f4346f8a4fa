/**
 * Builds the native engine and puts it where `src/native/load.ts` looks: native/touchdown.node.
 *
 * Without cargo it says so and ends well: the portable engine needs no compiler. With cargo, a
 * build that fails fails here too. CARGO_TARGET_DIR is kept to when it is set.
 */

import { spawnSync } from "node:child_process";
import { copyFileSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const native = join(dirname(dirname(fileURLToPath(import.meta.url))), "native");

function cargo(args, stdout) {
  return spawnSync("cargo", args, { cwd: native, encoding: "utf8", stdio: [0, stdout, 2] });
}

function say(what) {
  process.stdout.write(`native engine: ${what}\n`);
}

function libraryOf(platform) {
  if (platform === "darwin") return "libtouchdown_native.dylib";
  return platform === "win32" ? "touchdown_native.dll" : "libtouchdown_native.so";
}

if (cargo(["--version"], "ignore").error !== undefined) {
  say("not built, because there is no cargo; the portable engine remains");
} else {
  if (cargo(["build", "--release", "--locked"], 1).status !== 0) process.exit(1);
  const found = cargo(["metadata", "--format-version=1", "--no-deps", "--locked"], "pipe");
  if (found.status !== 0) process.exit(1);
  const release = join(JSON.parse(found.stdout).target_directory, "release");
  // A process may have the old file open: a rename leaves it whole, a copy over it does not.
  const target = join(native, "touchdown.node");
  copyFileSync(join(release, libraryOf(process.platform)), `${target}.new`);
  renameSync(`${target}.new`, target);
  say("built");
}
