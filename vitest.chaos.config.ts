import { defineConfig } from "vitest/config";

// Real processes, killed at random moments; CHAOS_ROUNDS says how often.
export default defineConfig({
  test: {
    include: ["test/chaos/**/*.test.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 180_000,
  },
});
