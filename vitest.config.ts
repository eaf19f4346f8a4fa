import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const hasBrowser = existsSync("/usr/bin/chromium");
const withoutBrowser = hasBrowser ? [] : ["test/browser/**"];
if (!hasBrowser && process.env["CI"] === "true") {
  throw new Error("CI must have /usr/bin/chromium: test/browser needs it");
}
if (!hasBrowser) {
  process.stderr.write("test/browser is skipped: there is no /usr/bin/chromium on this machine\n");
}

// The whole suite but for those that need cargo; the one in a browser where there is one.
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/agave/**", "test/validator/**", "test/chaos/**", ...withoutBrowser],
    pool: "forks",
    // Many files wait for timers and processes rather than for the processor.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // No test is about time, so only one that hangs is ended by these. On a quiet machine the
    // slowest takes a twelfth.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    globalSetup: ["test/support/postgres-run.ts"],
  },
});
