import { defineConfig } from "vitest/config";

// The whole suite but for the one against a real Agave server, which needs cargo.
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/agave/**", "test/validator/**", "test/chaos/**"],
    pool: "forks",
    testTimeout: 20_000,
    hookTimeout: 30_000,
    globalSetup: ["test/support/postgres-run.ts"],
  },
});
