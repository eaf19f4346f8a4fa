/**
 * Compiles the addon and puts it where `src/addon.ts` looks: client.node. Cargo's folder is in the
 * user's cache; CARGO_TARGET_DIR names another one.
 */

import { spawnSync } from "node:child_process";
import { copyFileSync, renameSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";

const { CARGO_TARGET_DIR: chosen, XDG_CACHE_HOME: cache } = process.env;
const target = chosen ?? join(cache ?? join(homedir(), ".cache"), "touchdown", "client-target");
const addon = join(import.meta.dirname, "client.node");

const { status } = spawnSync("cargo", ["build", "--release", "--locked"], {
  cwd: join(import.meta.dirname, "native"),
  env: { ...process.env, CARGO_TARGET_DIR: target },
  stdio: ["ignore", "inherit", "inherit"],
});
if (status !== 0) process.exit(1);
// A process may have the old file open: a rename leaves it whole. Two builds may run at a time.
const unfinished = `${addon}.${process.pid}`;
copyFileSync(join(target, "release", "libtouchdown_client_node.so"), unfinished);
renameSync(unfinished, addon);
