import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "./support/source-tree.ts";

interface Locked {
  readonly version: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const manifest = readFileSync(join(ROOT, "package.json"), "utf8");
const overrides: Record<string, string | Record<string, string>> = JSON.parse(manifest).overrides;
const lockfile = readFileSync(join(ROOT, "package-lock.json"), "utf8");
const locked: Record<string, Locked> = JSON.parse(lockfile).packages;

it("locks every package for every system that it has binaries for", () => {
  const missing = Object.entries(locked).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.entries(optionalDependencies).filter(([name, version]) => {
      // A package has its own copy where another one's, of a different version, is at the top.
      const copy = locked[`${path}/node_modules/${name}`] ?? locked[`node_modules/${name}`];
      const isWanted = copy?.version === (overrideOf(path, name) ?? version);
      return copy === undefined || (/^\d/.test(version) && !isWanted);
    }),
  );
  expect(missing, "npm ci refuses the lockfile, and other systems get no binary").toEqual([]);
});

/** The version that package.json says instead of the one that the package at that place names. */
function overrideOf(path: string, name: string): string | undefined {
  const inside = overrides[path.replace("node_modules/", "")];
  return typeof inside === "object" ? inside[name] : undefined;
}
