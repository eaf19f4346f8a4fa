import { defineConfig } from "vitest/config";

// The sender against Agave's own server. Builds it with cargo first, once a machine.
export default defineConfig({
  test: {
    include: ["test/agave/**/*.test.ts"],
    globalSetup: ["test/agave/build.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 1_200_000,
  },
});
