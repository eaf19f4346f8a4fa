/**
 * Keeps two edges from one journal file: each would cut off or replace what the other wrote, and a
 * key that one had heard revoked could come back with its restart.
 *
 * Whoever wants the lock puts a file of his own with the mark of his process beside the journal,
 * then looks whose are there: the later of two sees the earlier one's, whatever falls between. A
 * single file that is found void and replaced cannot promise that. What a killed process left is
 * void; so it is after a restart in a container, where the same number is another process.
 */

import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { SetupError } from "../../core/errors.ts";
import {
  isAlive,
  ownIdentity,
  type ProcessIdentity,
  parseIdentity,
} from "../../runtime/process-identity.ts";

export interface JournalLock {
  release(): void;
}

/** @throws SetupError while another living process, or another edge of this one, has it */
export function lockJournal(path: string): JournalLock {
  const folder = dirname(path);
  const mine = `${basename(path)}.lock.${process.pid}.${randomUUID()}`;
  const release = (): void => rmSync(join(folder, mine), { force: true });
  try {
    mkdirSync(folder, { recursive: true });
    put(folder, mine);
    const holder = rivalOf(folder, mine, `${basename(path)}.lock`);
    if (holder === null) return { release };
    release();
    throw taken(path, holder.pid);
  } catch (error) {
    if (error instanceof SetupError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new SetupError(`accounts.journal: ${path} cannot be written to: ${why}`);
  }
}

/** Under its name it is whole: half a mark would be void to who reads it. */
function put(folder: string, name: string): void {
  const unfinished = join(folder, `unfinished.${name}`);
  writeFileSync(unfinished, ownIdentity(), { flag: "wx", mode: 0o600 });
  renameSync(unfinished, join(folder, name));
}

/**
 * Who has the lock; null where it is ours, and then nobody else's is left.
 *
 * Of two who came at once the one whose name sorts first stays: the other sees that and goes. So
 * who stays looks again for a moment, and takes one that is there still for the holder.
 */
function rivalOf(folder: string, mine: string, prefix: string): ProcessIdentity | null {
  for (let look = 1; ; look += 1) {
    const others = readdirSync(folder).filter(
      (name) => name !== mine && name.startsWith(prefix) && END.test(name.slice(prefix.length)),
    );
    const living = others.flatMap((name) => {
      const identity = read(join(folder, name));
      return identity !== null && isAlive(identity) ? [{ name, identity }] : [];
    });
    const [first] = living;
    if (first === undefined) {
      for (const name of others) rmSync(join(folder, name), { force: true });
      return null;
    }
    if (look === LOOKS || living.some(({ name }) => name < mine)) return first.identity;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BETWEEN_LOOKS_MS);
  }
}

/** Of a lock's name behind the journal's; nothing where an edge of before made it. */
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
    return parseIdentity(readFileSync(file, "utf8"));
  } catch {
    // It went away meanwhile.
    return null;
  }
}
