import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

// The whole suite but for the one against a real Agave server, which needs cargo.
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/agave/**", "test/validator/**", "test/chaos/**"],
    pool: "forks",
    // Many files wait for timers and processes rather than for the processor.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // For a machine that does much else; on a quiet one the slowest test takes a quarter of it.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    globalSetup: ["test/support/postgres-run.ts"],
  },
});
