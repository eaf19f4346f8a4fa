/**
 * Prevents two edges from using one journal file: each would truncate or replace the other's
 * writes, and a key whose revocation one edge had received could return when it restarts.
 *
 * A process that wants the lock writes its own file with its process identity next to the journal,
 * then lists the others: the later of two always sees the earlier one's file. Replacing one shared
 * stale file cannot guarantee that. Files of killed processes are stale; so are those from before a
 * container restart, where the same number is another process.
 *
 * A full disk takes a file and no content, so the name alone says which process it is too: an edge
 * that is killed while the disk is full must start again.
 */

import { randomUUID } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf, messageOf, SetupError } from "../../core/errors.ts";
import {
  isAlive,
  ownIdentity,
  type ProcessIdentity,
  parseIdentity,
} from "../../runtime/process-identity.ts";

export interface JournalLock {
  release(): void;
}

/**
 * `write` writes the lock's file. @throws SetupError while another live process, or another edge of
 * this one, holds the lock
 */
export function lockJournal(
  path: string,
  write: typeof writeFileSync = writeFileSync,
): JournalLock {
  const folder = dirname(path);
  const mine = `${basename(path)}.lock.${ownSuffix()}`;
  const release = (): void => rmSync(join(folder, mine), { force: true });
  try {
    mkdirSync(folder, { recursive: true });
    requireNoFolder(path);
    put(folder, mine, write);
    const holder = rivalOf(folder, mine, `${basename(path)}.lock`);
    if (holder === null) return { release };
    release();
    throw taken(path, holder.pid);
  } catch (error) {
    if (error instanceof SetupError) throw error;
    const why = messageOf(error);
    throw new SetupError(`accounts.journal: ${path} cannot be written to: ${why}`);
  }
}

/**
 * What `lockJournal` would find, without writing anything: the number of the process that holds the
 * lock, or null.
 *
 * @throws SetupError when the journal cannot be written to
 */
export function journalHolder(path: string): number | null {
  try {
    let folder = dirname(path);
    // `lockJournal` makes missing folders, in the nearest one that exists.
    while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
    accessSync(folder, constants.W_OK | constants.X_OK);
    if (folder !== dirname(path)) return null;
    requireNoFolder(path);
    const [holder] = livingIn(folder, locksIn(folder, `${basename(path)}.lock`));
    return holder?.identity.pid ?? null;
  } catch (error) {
    const why = messageOf(error);
    throw new SetupError(`accounts.journal: ${path} cannot be written to: ${why}`);
  }
}

function requireNoFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
    throw new Error("it is a folder, a file is needed");
  }
}

/** Writes elsewhere and renames: others would treat a partial identity as stale. */
function put(folder: string, name: string, write: typeof writeFileSync): void {
  const unfinished = join(folder, `unfinished.${name}`);
  try {
    write(unfinished, ownIdentity(), { flag: "wx", mode: 0o600 });
  } catch (error) {
    const isFull = FULL.includes(codeOf(error) ?? "") && existsSync(unfinished);
    if (!isFull) {
      rmSync(unfinished, { force: true });
      throw error;
    }
    truncateSync(unfinished, 0);
  }
  renameSync(unfinished, join(folder, name));
}

const FULL: readonly string[] = ["ENOSPC", "EDQUOT"];

/** The number of this process, and a UUID that ends with its start time. */
function ownSuffix(): string {
  const start = Number(parseIdentity(ownIdentity())?.start ?? 0);
  const time = start.toString(16).padStart(TIME_DIGITS, "0").slice(-TIME_DIGITS);
  return `${process.pid}.${randomUUID().slice(0, -TIME_DIGITS)}${time}`;
}

const TIME_DIGITS = 12;

/** The process that a lock file of this name is of; null for an earlier version's lock. */
function identityIn(name: string): ProcessIdentity | null {
  const [, pid, time] = /\.(\d+)\.[0-9a-f-]{24}([0-9a-f]{12})$/.exec(name) ?? [];
  if (pid === undefined || time === undefined) return null;
  return { pid: Number(pid), start: String(Number.parseInt(time, 16)), namespace: null };
}

/**
 * The holder of the lock; null if it is ours, and then all other files are removed.
 *
 * Of two simultaneous processes the one whose file name sorts first stays, and the other sees that
 * and exits. The first one therefore checks up to 5 times, 5 ms apart, and then treats a remaining
 * process as the holder.
 */
function rivalOf(folder: string, mine: string, prefix: string): ProcessIdentity | null {
  for (let look = 1; ; look += 1) {
    const others = locksIn(folder, prefix).filter((name) => name !== mine);
    const living = livingIn(folder, others);
    const [first] = living;
    if (first === undefined) {
      for (const name of others) rmSync(join(folder, name), { force: true });
      return null;
    }
    if (look === LOOKS || living.some(({ name }) => name < mine)) return first.identity;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BETWEEN_LOOKS_MS);
  }
}

function locksIn(folder: string, prefix: string): readonly string[] {
  return readdirSync(folder).filter(
    (name) => name.startsWith(prefix) && END.test(name.slice(prefix.length)),
  );
}

/** The lock files whose processes run. */
function livingIn(folder: string, names: readonly string[]) {
  return names.flatMap((name) => {
    const identity = read(join(folder, name));
    return identity !== null && isAlive(identity) ? [{ name, identity }] : [];
  });
}

/** Suffix of a lock file after the journal's name; empty for an earlier version's lock. */
const END = /^(?:\.\d+\.[0-9a-f-]{36})?$/;
const LOOKS = 5;
const BETWEEN_LOOKS_MS = 5;

function taken(path: string, pid: number): SetupError {
  return new SetupError(
    `accounts.journal: ${path} is in use by process ${pid}; each edge needs a journal of its own`,
  );
}

function read(file: string): ProcessIdentity | null {
  try {
    const text = readFileSync(file, "utf8");
    return text === "" ? identityIn(basename(file)) : parseIdentity(text);
  } catch {
    // The file was deleted meanwhile.
    return null;
  }
}
