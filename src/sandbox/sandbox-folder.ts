/**
 * Where a sandbox keeps what it is made of for as long as it runs, and the end of what killed ones
 * left: a temporary folder with secrets in it and, where root lent Postgres a user, a folder of
 * that one's elsewhere, a hundred megabytes together.
 *
 * Only what has a sandbox's name and names its process in `owner.json` is removed, of temporary
 * folders those of this user, and only when that process has ended for certain.
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

/** Makes a folder that names this process. */
export function makeSandboxFolder(temporary = tmpdir()): string {
  const folder = mkdtempSync(join(temporary, PREFIX));
  writeFileSync(join(folder, OWNER), ownIdentity(), { mode: 0o600 });
  return folder;
}

/**
 * Removes what sandboxes left that were killed, some at a time; never rejects. Resolves with the
 * folders that are gone.
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
      // Nobody's any more, but a server whose guard was killed as well goes on by itself.
      await endLeftover({ data: join(path, postgres, "data") }, clock);
      await rm(path, { recursive: true, force: true });
      removed.push(path);
    } catch (error) {
      log.warn({ err: error, path }, "what a killed sandbox left cannot be removed");
    }
  }
  return removed;
}

/** Anybody may make a folder with such a name among the temporary ones. */
function isOwn(path: string): boolean {
  try {
    return lstatSync(path).uid === (process.getuid?.() ?? 0);
  } catch {
    // It went away meanwhile.
    return false;
  }
}

function isLeftover(path: string): boolean {
  try {
    const identity = parseIdentity(readFileSync(join(path, OWNER), "utf8"));
    return identity !== null && hasEnded(identity);
  } catch {
    // It says nobody's name: one that is being made, or something else.
    return false;
  }
}

/** Folders of this place with such a name; a link is none. */
function namesIn(place: string, fits: (name: string) => boolean): readonly string[] {
  try {
    const entries = readdirSync(place, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isDirectory() && fits(entry.name) ? entry.name : []));
  } catch {
    // It is not there, or not for us.
    return [];
  }
}

const PREFIX = "touchdown-sandbox-";
const OWNER = "owner.json";
/** Six characters are what `mkdtemp` adds. */
const NAME = /^touchdown-sandbox-[A-Za-z0-9]{6}$/;
const NAME_LENT = /^[A-Za-z0-9]{6}-postgres$/;
