import { defineConfig } from "vitest/config";

const shared = {
  include: ["test/agave/**/*.test.ts"],
  globalSetup: ["test/agave/build.ts"],
  pool: "forks" as const,
  testTimeout: 180_000,
  hookTimeout: 1_200_000,
};

// The sender against Agave's own server, of two releases: `--project agave-4.4` runs one of them.
// Builds it with cargo first, once a machine.
export default defineConfig({
  test: {
    fileParallelism: false,
    projects: [
      { test: { ...shared, name: "agave-4.2", env: { AGAVE_RELEASE: "4.2" } } },
      {
        test: {
          ...shared,
          name: "agave-4.4",
          env: { AGAVE_RELEASE: "4.4" },
          // The parser and the clients are programs of their own.
          exclude: ["parser", "submission", "rpc-client"].map((it) => `test/agave/${it}.test.ts`),
        },
      },
    ],
  },
});
