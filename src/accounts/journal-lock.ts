/**
 * Keeps two edges from one journal file: each would cut off or replace what the other wrote, and a
 * key that one had heard revoked could come back with its restart.
 *
 * The lock is a file beside the journal with the mark of its process. What a killed process left
 * is void; so it is after a restart in a container, where the same number is another process.
 */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { SetupError } from "../core/errors.ts";
import { isAlive, markOf, ownMark, type ProcessMark } from "../core/process-mark.ts";

export interface JournalLock {
  release(): void;
}

/** @throws SetupError while another living process, or another edge of this one, has it */
export function lockJournal(path: string): JournalLock {
  const file = `${path}.lock`;
  const mine = ownMark();
  try {
    mkdirSync(dirname(path), { recursive: true });
    if (!made(file, mine)) {
      const holder = holderOf(file);
      if (holder !== null && isAlive(holder)) throw taken(path, holder.pid);
      rmSync(file, { force: true });
      if (!made(file, mine)) throw taken(path, holderOf(file)?.pid ?? null);
    }
  } catch (error) {
    if (error instanceof SetupError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new SetupError(`accounts.journal: ${path} cannot be written to: ${why}`);
  }
  return { release: () => rmSync(file, { force: true }) };
}

function taken(path: string, pid: number | null): SetupError {
  const who = pid === null ? "another process" : `process ${pid}`;
  return new SetupError(
    `accounts.journal: ${path} is in use by ${who}; each edge needs a journal of its own`,
  );
}

/** False where the file is there already. */
function made(file: string, text: string): boolean {
  try {
    writeFileSync(file, text, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

function holderOf(file: string): ProcessMark | null {
  try {
    return markOf(readFileSync(file, "utf8"));
  } catch {
    // It went away meanwhile.
    return null;
  }
}
