/**
 * Where a running sandbox keeps its files, and the removal of what killed ones left: a temporary
 * folder with secrets and, where root runs Postgres as another user, a folder elsewhere that this
 * user can reach, together a hundred megabytes.
 *
 * Removes only folders that have a sandbox's name and name their process in `owner.json`, of
 * temporary folders only those of this user, and only when that process has ended for certain.
 */

import { lstatSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { hasEnded, ownIdentity, parseIdentity } from "../runtime/process-identity.ts";
import { SANDBOX_LEFTOVERS_MAX } from "./limits.ts";
import { lentFolderName, ROOT_FOLDER } from "./postgres-binaries.ts";
import { endLeftover } from "./postgres-folder.ts";

export interface LeftoverDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/** Creates a folder that names this process. */
export function makeSandboxFolder(temporary = tmpdir()): string {
  const folder = mkdtempSync(join(temporary, PREFIX));
  writeFileSync(join(folder, OWNER), ownIdentity(), { mode: 0o600 });
  return folder;
}

/**
 * Removes what killed sandboxes left, a bounded number per call; never rejects. Resolves with the
 * removed folders.
 */
export async function removeLeftovers(
  { clock, log }: LeftoverDeps,
  temporary = tmpdir(),
  lent = ROOT_FOLDER,
): Promise<readonly string[]> {
  const own = (name: string): boolean => NAME.test(name);
  const start = lentFolderName(join(temporary, PREFIX));
  const theirs = (name: string): boolean => {
    return name.startsWith(start) && NAME_LENT.test(name.slice(start.length));
  };
  const places = [
    ...namesIn(lent, theirs).map((name) => ({ path: join(lent, name), postgres: "" })),
    ...namesIn(temporary, own)
      .map((name) => ({ path: join(temporary, name), postgres: "postgres" }))
      .filter(({ path }) => isOwn(path)),
  ];
  const removed: string[] = [];
  for (const { path, postgres } of places) {
    if (removed.length >= SANDBOX_LEFTOVERS_MAX) break;
    try {
      if (!isLeftover(path)) continue;
      // The owner is gone, but a server whose guard was killed as well still runs.
      await endLeftover({ data: join(path, postgres, "data") }, clock);
      await rm(path, { recursive: true, force: true });
      removed.push(path);
    } catch (error) {
      log.warn({ err: error, path }, "what a killed sandbox left cannot be removed");
    }
  }
  return removed;
}

/** Any user may create a folder with such a name among the temporary ones. */
function isOwn(path: string): boolean {
  try {
    return lstatSync(path).uid === (process.getuid?.() ?? 0);
  } catch {
    // It was removed meanwhile.
    return false;
  }
}

function isLeftover(path: string): boolean {
  try {
    const identity = parseIdentity(readFileSync(join(path, OWNER), "utf8"));
    return identity !== null && hasEnded(identity);
  } catch {
    // It names no process: it is being created, or is something else.
    return false;
  }
}

/** Folders in this place with such a name, without links. */
function namesIn(place: string, fits: (name: string) => boolean): readonly string[] {
  try {
    const entries = readdirSync(place, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isDirectory() && fits(entry.name) ? entry.name : []));
  } catch {
    // It does not exist, or is not readable.
    return [];
  }
}

const PREFIX = "touchdown-sandbox-";
const OWNER = "owner.json";
/** `mkdtemp` adds six characters. */
const NAME = /^touchdown-sandbox-[A-Za-z0-9]{6}$/;
const NAME_LENT = /^[A-Za-z0-9]{6}-postgres$/;
