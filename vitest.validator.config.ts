import { defineConfig } from "vitest/config";

// An edge before a real validator on loopback. Builds it with cargo first, once a machine.
export default defineConfig({
  test: {
    include: ["test/validator/**/*.test.ts"],
    globalSetup: ["test/validator/build.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
