import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "./support/source-tree.ts";

interface Locked {
  readonly version: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const lockfile = readFileSync(join(ROOT, "package-lock.json"), "utf8");
const locked: Record<string, Locked> = JSON.parse(lockfile).packages;

it("locks every package for every system that it has binaries for", () => {
  const missing = Object.entries(locked).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.entries(optionalDependencies).filter(([name, version]) => {
      // A package has its own copy where another one's, of a different version, is at the top.
      const copy = locked[`${path}/node_modules/${name}`] ?? locked[`node_modules/${name}`];
      return copy === undefined || (/^\d/.test(version) && copy.version !== version);
    }),
  );
  expect(missing, "npm ci refuses the lockfile, and other systems get no binary").toEqual([]);
});
