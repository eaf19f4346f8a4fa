/**
 * Sees to it that an embedded Postgres does not outlive the process that started it, even where
 * that one is killed. Postgres does not look at its parent, and nobody is told of a SIGKILL; but
 * the kernel closes the dead process's files. So a shell waits at the other end of a pipe that we
 * hold and never write to: when it ends, the shell ends the server, fast first and by force after a
 * while.
 *
 * A number may be another process's by then: the command line must name the server's data.
 */

import { spawn } from "node:child_process";
import type { RunAs } from "./postgres-binaries.ts";

/** The server, and the folder that its command line names. */
export interface Guarded {
  readonly pid: number;
  readonly data: string;
}

export interface Guard {
  /** The server may go on from now on, whatever becomes of us. */
  dismiss(): void;
}

/**
 * Where there is no shell the server is left to the next start, which ends it.
 * `patience`: seconds from asking it to end to ending it by force.
 */
export function guardServer({ pid, data }: Guarded, runAs: RunAs, patience = 10): Guard {
  const words = ["guard", String(pid), data, String(patience)];
  const shell = spawn("/bin/sh", ["-c", SCRIPT, ...words], {
    ...(runAs ?? {}),
    cwd: "/",
    // A session of its own: Ctrl-C at a terminal is for us alone.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: { PATH: "/usr/bin:/bin" },
  });
  shell.once("error", () => {
    // No shell here: nobody watches.
  });
  // It keeps nobody from ending.
  shell.unref();
  if ("unref" in shell.stdin && typeof shell.stdin.unref === "function") shell.stdin.unref();
  return { dismiss: () => void shell.kill("SIGKILL") };
}

/** `$1` is the server's number, `$2` its data, `$3` the patience; without /proc, `$1` must do. */
const SCRIPT = `
ours() {
  if [ -d /proc/self ]; then
    tr '\\0' '\\n' < "/proc/$1/cmdline" 2>/dev/null | grep -qxF -- "$2"
  else
    kill -0 "$1" 2>/dev/null
  fi
}
read -r _
ours "$1" "$2" && kill -INT "$1"
left="$3"
while [ "$left" -gt 0 ]; do
  ours "$1" "$2" || exit 0
  sleep 1
  left=$((left - 1))
done
ours "$1" "$2" && kill -KILL "$1"
`;
