/**
 * Keeps two edges from one journal file: each would cut off or replace what the other wrote, and a
 * key that one had heard revoked could come back with its restart.
 *
 * The lock is a file beside the journal that names its process and when that was started. What a
 * killed process left is void; so it is after a restart in a container, where the same number is
 * another process.
 */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { SetupError } from "../core/errors.ts";

export interface JournalLock {
  release(): void;
}

interface Holder {
  readonly pid: number;
  readonly start: string | null;
}

/** @throws SetupError while another living process, or another edge of this one, has it */
export function lockJournal(path: string): JournalLock {
  const file = `${path}.lock`;
  const mine = JSON.stringify({ pid: process.pid, start: startOf(process.pid) } satisfies Holder);
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

function holderOf(file: string): Holder | null {
  try {
    const { pid, start }: { pid?: unknown; start?: unknown } = JSON.parse(
      readFileSync(file, "utf8"),
    );
    if (typeof pid !== "number") return null;
    return { pid, start: typeof start === "string" ? start : null };
  } catch {
    // Not written whole: its process was killed while it wrote.
    return null;
  }
}

function isAlive({ pid, start }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Not allowed to signal it means that it is there.
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return false;
  }
  return startOf(pid) === start;
}

/** When a process was started, in ticks since boot; null where that cannot be told, or it ended. */
function startOf(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? null : (fields[START_FIELD] ?? null);
  } catch {
    // Another system, or no such process.
    return null;
  }
}

/** Field 22 of `/proc/PID/stat`, counted from the state, which is field 3. */
const START_FIELD = 19;
