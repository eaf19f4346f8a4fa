/**
 * The example program of the Rust client, compiled once on each machine, and a keypair file for it.
 */

import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Identity } from "../../src/send/identity.ts";
import { ROOT } from "./source-tree.ts";

const crate = join(ROOT, "clients/rust");

function targetFolder(): string {
  const { CARGO_TARGET_DIR: chosen, XDG_CACHE_HOME: cache } = process.env;
  return chosen ?? join(cache ?? join(homedir(), ".cache"), "touchdown", "client-target");
}

export const hasCargo = spawnSync("cargo", ["--version"]).status === 0;

/** Compiles it; throws an Error where that fails. */
export function buildClientProgram(): string {
  const { status, stderr } = spawnSync("cargo", ["build", "--locked", "--example", "submit"], {
    cwd: crate,
    env: { ...process.env, CARGO_TARGET_DIR: targetFolder() },
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`clients/rust does not compile:\n${stderr}`);
  return join(targetFolder(), "debug/examples/submit");
}

/** Writes a keypair as `solana-keygen` does. */
export function writeKeypair(file: string, { seed, publicKey }: Identity): string {
  writeFileSync(file, JSON.stringify([...seed, ...publicKey]));
  return file;
}

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a program with these variables to its end. */
export async function run(
  program: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<Ran> {
  const child = spawn(program, [...args], {
    env: { ...process.env, ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (data: Buffer) => {
    out += data.toString();
  });
  child.stderr.on("data", (data: Buffer) => {
    err += data.toString();
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, out, err };
}
