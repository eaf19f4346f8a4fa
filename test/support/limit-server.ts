/**
 * The installed server for shared limits. Tests that need it are skipped where it is missing,
 * except in CI, where that fails.
 */

import { spawnSync } from "node:child_process";

const PROGRAMS = ["valkey-server", "redis-server"];

/** Undefined where it is not installed. */
export const program: string | undefined = PROGRAMS.find(
  (name) => spawnSync(name, ["--version"]).error === undefined,
);

if (program === undefined && process.env["CI"] === "true") {
  throw new Error(`CI must have ${PROGRAMS.join(" or ")}: the tests of shared limits need it`);
}

export const title = program === undefined ? `needs ${PROGRAMS.join(" or ")}` : `with ${program}`;
