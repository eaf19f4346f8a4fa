/**
 * Ends an embedded Postgres when the process that started it ends, even if it is killed. Postgres
 * does not watch its parent, and no process is notified of a SIGKILL; but the kernel closes the
 * dead process's files. So a shell waits at the other end of a pipe that this process holds and
 * never writes to: when the pipe closes, the shell ends the server, fast first and by force after a
 * timeout.
 *
 * The process number may be reused by then: the command line must name the server's data.
 */

import { spawn } from "node:child_process";
import type { RunAs } from "./postgres-binaries.ts";

/** The server, and the data folder in its command line. */
export interface Guarded {
  readonly pid: number;
  readonly data: string;
}

export interface Guard {
  /** From now on the server may continue when this process ends. */
  dismiss(): void;
}

/**
 * Without a shell, the next start ends the server instead. `patience`: seconds between the shutdown
 * request and the forced end.
 */
export function guardServer({ pid, data }: Guarded, runAs: RunAs, patience = 10): Guard {
  const words = ["guard", String(pid), data, String(patience)];
  const shell = spawn("/bin/sh", ["-c", SCRIPT, ...words], {
    ...(runAs ?? {}),
    cwd: "/",
    // A session of its own: Ctrl-C at a terminal reaches only this process.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: { PATH: "/usr/bin:/bin" },
  });
  shell.once("error", () => {
    // No shell: no guard.
  });
  // The shell does not keep this process alive.
  shell.unref();
  if ("unref" in shell.stdin && typeof shell.stdin.unref === "function") shell.stdin.unref();
  return { dismiss: () => void shell.kill("SIGKILL") };
}

/**
 * `$1` is the server's process number, `$2` its data, `$3` the patience; without /proc only `$1` is
 * checked.
 */
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
