/**
 * Before and after a run of the suite: a folder for the server that `postgres.ts` may start, and
 * its end. Nothing is started for a run that needs none.
 */

import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    readonly postgresFolder: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "touchdown-test-"));
  await chmod(folder, 0o755);
  project.provide("postgresFolder", folder);
  return async () => {
    const file = join(folder, "pid");
    if (existsSync(file)) {
      try {
        process.kill(Number(readFileSync(file, "utf8")), "SIGQUIT");
      } catch {
        // It ended by itself.
      }
      await gone(Number(readFileSync(file, "utf8")));
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
}

async function gone(pid: number): Promise<void> {
  for (let i = 0; i < 500 && existsSync(`/proc/${pid}`); i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
