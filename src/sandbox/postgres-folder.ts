/**
 * The folder of an embedded Postgres: its data, its passwords, and the owning process.
 *
 *     data/          made by initdb in one step: an existing folder is complete
 *     server.json    port and passwords, mode 0600
 *     owner.json     the process that runs the server
 *     server.log     the log of Postgres
 *
 * A server whose owner and guard were killed continues to run and would block the next one. It is
 * ended here after a check of its command line: the number in a stale file may be another process's
 * by now.
 */

import { randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, until } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import { isAlive, ownIdentity, parseIdentity } from "../runtime/process-identity.ts";
import { POSTGRES_POLL_MS } from "./limits.ts";
import type { RunAs } from "./postgres-binaries.ts";

/** Access data of a server; created at the first start and kept. */
export interface ServerFacts {
  /** null until a port was chosen. */
  readonly port: number | null;
  readonly ownerPassword: string;
  readonly controlPassword: string;
  readonly edgePassword: string;
}

export interface Folder {
  readonly path: string;
  readonly data: string;
  readonly log: string;
  facts(): ServerFacts;
  keepPort(port: number): void;
}

/** Creates the folder if missing. */
export function openFolder(path: string): Folder {
  mkdirSync(path, { recursive: true, mode: 0o755 });
  const file = join(path, "server.json");
  const write = (facts: ServerFacts): void => {
    writeFileSync(`${file}.new`, `${JSON.stringify(facts, null, 2)}\n`, {
      mode: 0o600,
      flush: true,
    });
    renameSync(`${file}.new`, file);
  };
  const read = (): ServerFacts => {
    if (!existsSync(file)) {
      const [ownerPassword, controlPassword, edgePassword] = [password(), password(), password()];
      write({ port: null, ownerPassword, controlPassword, edgePassword });
    }
    return factsOf(readFileSync(file, "utf8"), file);
  };
  return {
    path,
    data: join(path, "data"),
    log: join(path, "server.log"),
    facts: read,
    keepPort: (port) => write({ ...read(), port }),
  };
}

/**
 * Records this process as the server's owner; throws a `SetupError` if another living process is.
 */
export function claim(folder: Folder): void {
  const file = join(folder.path, "owner.json");
  const holder = existsSync(file) ? parseIdentity(readFileSync(file, "utf8")) : null;
  if (holder !== null && holder.pid !== process.pid && isAlive(holder)) {
    throw new SetupError(`${folder.path} is in use by process ${holder.pid}: stop that one first`);
  }
  writeFileSync(file, ownIdentity());
}

export async function release(folder: Folder): Promise<void> {
  await rm(join(folder.path, "owner.json"), { force: true });
}

/**
 * Ends a server left running on this data, and removes the file that a killed one leaves. Resolves
 * when no server uses the data; rejects with a `SetupError` if a server cannot be ended.
 */
export async function endLeftover(folder: Pick<Folder, "data">, clock: Clock): Promise<void> {
  const file = join(folder.data, "postmaster.pid");
  const pid = postmasterPid(folder);
  // Without /proc the process cannot be checked, and Postgres itself decides whether the file is
  // valid.
  if (pid === null || !existsSync("/proc/self/cmdline")) return;
  for (const [signal, timeoutMs] of ENDINGS) {
    if (!isOurServer(pid, folder.data)) break;
    try {
      process.kill(pid, signal);
    } catch {
      // It ended between the check and the signal.
    }
    const wait = { timeoutMs, periodMs: POSTGRES_POLL_MS };
    await until(clock, wait, () => !isOurServer(pid, folder.data));
  }
  if (isOurServer(pid, folder.data)) {
    throw new SetupError(`process ${pid} runs Postgres on ${folder.data} and cannot be ended`);
  }
  await rm(file, { force: true });
}

/** Postgres' own status: `ready` once it accepts connections; null for none. */
export function serverStatus(folder: Folder, pid: number): string | null {
  const lines = pidFileLines(folder);
  return Number(lines[0]) === pid ? (lines[STATUS_LINE]?.trim() ?? null) : null;
}

/** Makes the user that Postgres runs as the owner of a path. */
export function give(path: string, runAs: RunAs): void {
  if (runAs !== null) chownSync(path, runAs.uid, runAs.gid);
}

function postmasterPid(folder: Pick<Folder, "data">): number | null {
  const pid = Number(pidFileLines(folder)[0]);
  return Number.isSafeInteger(pid) && pid > 1 ? pid : null;
}

function pidFileLines(folder: Pick<Folder, "data">): readonly string[] {
  try {
    return readFileSync(join(folder.data, "postmaster.pid"), "utf8").split("\n");
  } catch {
    // No file, so no server.
    return [];
  }
}

/** Whether this process is a Postgres on this data; false for an ended process. */
function isOurServer(pid: number, data: string): boolean {
  try {
    if (/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))) return false;
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return words.includes(data) && words.some((word) => word.endsWith("postgres"));
  } catch {
    // The process no longer exists.
    return false;
  }
}

function factsOf(text: string, file: string): ServerFacts {
  try {
    // Only this file writes it; damage fails here or in the check below.
    const facts = JSON.parse(text) as ServerFacts;
    if (typeof facts.ownerPassword === "string" && typeof facts.edgePassword === "string") {
      return facts;
    }
  } catch {
    // Reported below, like any other damage.
  }
  throw new SetupError(`${file} is damaged: without its passwords the database cannot be opened`);
}

function password(): string {
  return randomBytes(24).toString("base64url");
}

/** Fast, immediate and forced shutdown, each with its time limit in milliseconds. */
const ENDINGS: readonly (readonly [NodeJS.Signals, number])[] = [
  ["SIGINT", 10_000],
  ["SIGQUIT", 5_000],
  ["SIGKILL", 2_000],
];
/** `postmaster.pid`: the pid is its first line, the status its eighth. Postgres 18, 2026-11. */
const STATUS_LINE = 7;
