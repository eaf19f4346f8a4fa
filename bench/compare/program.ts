/**
 * The Rust program in this folder. Cargo builds it where something changed, into a target folder
 * outside the project; the bench talks to it in lines.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The program with Agave's server and client, and the one without. */
export type ProgramName = "touchdown-compare" | "touchdown-load";

/** Builds the program and returns its path. */
export function buildProgram(name: ProgramName = "touchdown-compare"): string {
  const { CARGO_TARGET_DIR: chosen, XDG_CACHE_HOME: cache } = process.env;
  const target = chosen ?? join(cache ?? join(homedir(), ".cache"), "touchdown", "agave-target");
  const features = name === "touchdown-load" ? ["--no-default-features"] : [];
  const build = spawnSync("cargo", ["build", "--release", "--locked", "--bin", name, ...features], {
    cwd: import.meta.dirname,
    env: { ...process.env, CARGO_TARGET_DIR: target },
    stdio: "inherit",
  });
  if (build.status !== 0) throw new Error("cargo could not build bench/compare");
  return join(target, "release", name);
}

/** A child process that responds to a line with a line. */
export interface LineProcess {
  readonly process: ChildProcess;
  readonly pid: number;
  /** The next line that it prints. */
  line(): Promise<string>;
  say(line: string): void;
  stop(): Promise<void>;
}

export function startLines(program: string, args: readonly string[]): LineProcess {
  const child = spawn(program, [...args], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  if (child.pid === undefined) throw new Error(`could not start ${program}`);
  return {
    process: child,
    pid: child.pid,
    async line() {
      const { done, value } = await lines.next();
      if (done === true) throw new Error(`${args[0]} ended early`);
      return value;
    },
    say(line) {
      child.stdin.write(`${line}\n`);
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const over = once(child, "exit");
      child.kill("SIGKILL");
      await over;
    },
  };
}
