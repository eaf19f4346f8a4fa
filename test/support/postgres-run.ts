/**
 * Setup and teardown of a run of the suite: a folder for all temporary files of the run, including
 * one for the server that `postgres.ts` may start. Nothing is started for a run that needs none.
 */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { lentFolderName, ROOT_FOLDER } from "../../src/sandbox/postgres-binaries.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly postgresFolder: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const run = await mkdtemp(join(tmpdir(), "touchdown-test-"));
  // Postgres runs as another user where the suite runs as root.
  await chmod(run, 0o755);
  const folder = join(run, "postgres");
  await mkdir(folder, { mode: 0o755 });
  project.provide("postgresFolder", folder);
  // The processes of test files, and their children, inherit it.
  process.env["TMPDIR"] = run;
  return async () => {
    const file = join(folder, "pid");
    if (existsSync(file)) {
      try {
        process.kill(Number(readFileSync(file, "utf8")), "SIGQUIT");
      } catch {
        // It has already ended.
      }
      await gone(Number(readFileSync(file, "utf8")));
    }
    // Terminated processes may still be writing.
    for (const path of [run, ...lentOf(run)]) {
      await rm(path, { recursive: true, force: true, maxRetries: 20 });
    }
  };
}

/**
 * Folders that the other user created elsewhere for tests of this run as root, and that are left.
 */
function lentOf(run: string): readonly string[] {
  if (!existsSync(ROOT_FOLDER)) return [];
  const names = readdirSync(ROOT_FOLDER);
  const start = `${lentFolderName(run)}-`;
  return names.filter((name) => name.startsWith(start)).map((name) => join(ROOT_FOLDER, name));
}

async function gone(pid: number): Promise<void> {
  for (let i = 0; i < 6_000 && lives(pid); i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A zombie stays in the list until its parent waits for it. */
function lives(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    // It is gone.
    return false;
  }
}
