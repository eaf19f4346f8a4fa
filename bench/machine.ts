/** The context of a measurement: the machine, the Node version, the commit. */

import { execFileSync } from "node:child_process";
import { cpus, release, totalmem } from "node:os";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memory_gb: number;
  readonly kernel: string;
}

export function machine(): Machine {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memory_gb: Math.round(totalmem() / 1e8) / 10,
    kernel: release(),
  };
}

/** The commit that is checked out, marked if sources differ from it; null outside of git. */
export function commit(): string | null {
  try {
    const git = (...args: string[]): string =>
      execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    const changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "native");
    return git("rev-parse", "--short=12", "HEAD") + (changed === "" ? "" : "+changes");
  } catch {
    // Without git, or outside of a checkout, a result has no commit.
    return null;
  }
}
