/**
 * The example programs of the clients in `clients/`, compiled once on each machine, and what they
 * are run with.
 */

import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Identity } from "../../src/send/identity.ts";
import { ROOT } from "./source-tree.ts";

function targetFolder(): string {
  const { CARGO_TARGET_DIR: chosen, XDG_CACHE_HOME: cache } = process.env;
  return chosen ?? join(cache ?? join(homedir(), ".cache"), "touchdown", "client-target");
}

export const hasCargo = spawnSync("cargo", ["--version"]).status === 0;

/** How long compiling may take: a machine compiles the clients and their crates once. */
export const COMPILE_MS = 15 * 60_000;

/** A program and its arguments before the files. */
export type Program = readonly [string, ...string[]];

/** Compiles the Rust client's; throws an Error where that fails. */
export function buildRustProgram(): Program {
  const { status, stderr } = spawnSync("cargo", ["build", "--locked", "--example", "submit"], {
    cwd: join(ROOT, "clients/rust"),
    env: { ...process.env, CARGO_TARGET_DIR: targetFolder() },
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`clients/rust does not compile:\n${stderr}`);
  return [join(targetFolder(), "debug/examples/submit")];
}

/** Compiles the TypeScript client and its addon; throws an Error where that fails. */
export function buildTypescriptProgram(): Program {
  const { status, stderr } = spawnSync("npm", ["run", "--silent", "build"], {
    cwd: join(ROOT, "clients/typescript"),
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`clients/typescript does not compile:\n${stderr}`);
  const tsx = join(ROOT, "node_modules/tsx/dist/cli.mjs");
  return [process.execPath, tsx, join(ROOT, "clients/typescript/examples/submit.ts")];
}

/** A crate of one program that uses the Rust client, in this folder. */
export function rustProgramOf(source: string, folder: string): Program {
  mkdirSync(join(folder, "src"), { recursive: true });
  writeFileSync(join(folder, "src/main.rs"), source);
  const manifest = join(folder, "Cargo.toml");
  writeFileSync(
    manifest,
    '[package]\nname = "pasted"\nedition = "2024"\n[workspace]\n[dependencies]\n' +
      'tokio = { version = "1", features = ["macros", "rt-multi-thread"] }\n' +
      `touchdown-client = { path = "${join(ROOT, "clients/rust")}" }\n`,
  );
  copyFileSync(join(ROOT, "clients/rust/Cargo.lock"), join(folder, "Cargo.lock"));
  const target = ["--target-dir", targetFolder(), "--manifest-path", manifest];
  return ["cargo", "run", "--quiet", "--offline", ...target];
}

/** A program that finds the TypeScript client as a package, in this folder. */
export function typescriptProgramOf(source: string, folder: string): Program {
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  const client = join(ROOT, "clients/typescript");
  symlinkSync(client, join(folder, "node_modules/touchdown-client"));
  writeFileSync(join(folder, "send.mjs"), source);
  return [process.execPath, "send.mjs"];
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

/** Runs a program with these files and variables to its end, in the project or this folder. */
export async function run(
  [program, ...before]: Program,
  files: readonly string[],
  variables: Readonly<Record<string, string>>,
  cwd: string = ROOT,
): Promise<Ran> {
  const child = spawn(program, [...before, ...files], {
    cwd,
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
