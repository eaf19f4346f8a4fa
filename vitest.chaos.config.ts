import { defineConfig } from "vitest/config";

// Real processes, killed at random moments; CHAOS_ROUNDS says how often.
export default defineConfig({
  test: {
    include: ["test/chaos/**/*.test.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
