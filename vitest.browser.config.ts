import { defineConfig } from "vitest/config";

// The dashboard in a real browser. Fails where there is no Chromium, instead of skipping.
export default defineConfig({
  test: {
    include: ["test/browser/**/*.test.ts"],
    pool: "forks",
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
