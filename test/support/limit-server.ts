/**
 * The server that keeps shared limits, as it is installed here. Tests that need it are left out
 * where there is none, but for CI: there it is missing by mistake, and that must be seen.
 */

import { spawnSync } from "node:child_process";

const PROGRAMS = ["valkey-server", "redis-server"];

/** Undefined where there is none. */
export const program: string | undefined = PROGRAMS.find(
  (name) => spawnSync(name, ["--version"]).error === undefined,
);

if (program === undefined && process.env["CI"] === "true") {
  throw new Error(`CI must have ${PROGRAMS.join(" or ")}: the tests of shared limits need it`);
}

export const title = program === undefined ? `needs ${PROGRAMS.join(" or ")}` : `with ${program}`;
