/**
 * What npm installs: the packages of an edge against a list, the sandbox's apart from them, and a
 * checksum for each that a machine of the kind that package.json names gets.
 */

import { describe, expect, it } from "vitest";
import { installed, isFor, lockedPackages, machine, readRoot } from "./support/lockfiles.ts";
import { listFiles, packageOf, readSource } from "./support/source-tree.ts";

const manifest: {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>;
} = JSON.parse(readRoot("package.json"));

describe("what an edge installs", () => {
  const production = installed.filter(({ dev }) => !dev).map(({ name }) => name);

  it("is what test/production-packages.txt lists", () => {
    const listed = readRoot("test/production-packages.txt").trimEnd().split("\n");
    expect([...new Set(production)].sort()).toEqual(listed);
  });

  it("holds one binary of the HTTP library for each line of Node", () => {
    const binaries = production.filter((name) => name.startsWith("@uwsjs/linux-x64-"));
    expect(binaries.length).toBeGreaterThan(4);
    expect(binaries).toEqual([...new Set(binaries)]);
  });

  it("holds no compiler and nothing of the sandbox", () => {
    const peers = Object.keys(manifest.peerDependencies);
    const foreign = production.filter((name) => /typescript/.test(name) || peers.includes(name));
    expect(foreign).toEqual([]);
  });
});

describe("the sandbox's packages", () => {
  const names = Object.keys(manifest.peerDependencies);

  it("are optional for others, and a clone installs the same versions", () => {
    for (const name of names) {
      expect(manifest.peerDependenciesMeta[name], name).toEqual({ optional: true });
      expect(manifest.devDependencies[name], name).toBe(manifest.peerDependencies[name]);
    }
  });

  it("are imported below src/sandbox alone, which the rest loads when it is asked for it", () => {
    const outside = listFiles("src", ".ts")
      .filter((path) => !path.startsWith("src/sandbox/"))
      .map(readSource);
    const uses = outside.flatMap(({ path, imports }) =>
      imports
        .filter(({ specifier }) => names.includes(packageOf(specifier) ?? ""))
        .map(({ specifier }) => `${path} imports ${specifier}`),
    );
    expect(uses).toEqual([]);
    const loads = outside.flatMap(({ path, imports }) =>
      imports
        .filter(({ file }) => file?.startsWith("src/sandbox/"))
        .map(({ file }) => [path, file]),
    );
    expect(loads).toEqual([
      ["src/cli/sandbox.ts", "src/sandbox/sandbox-packages.ts"],
      ["src/cli/sandbox.ts", "src/sandbox/sandbox.ts"],
    ]);
    expect(readRoot("src/cli/sandbox.ts")).toContain('await import("../sandbox/sandbox.ts")');
    const { imports } = readSource("src/sandbox/sandbox-packages.ts");
    expect(imports.filter(({ file }) => file?.startsWith("src/sandbox/"))).toEqual([]);
  });
});

describe("the lockfile", () => {
  it("holds a checksum of each package that the machine of package.json installs", () => {
    expect(machine).toEqual({ os: "linux", cpu: "x64", libc: "glibc" });
    expect(installed.length).toBeGreaterThan(300);
    const without = installed.filter(({ integrity }) => !/^sha512-/.test(integrity ?? ""));
    expect(without.map(({ place }) => place)).toEqual([]);
  });

  it.each([
    ["no condition", {}, true],
    ["this system", { os: ["linux"], cpu: ["x64", "arm64"], libc: "glibc" }, true],
    ["another system", { os: ["darwin"] }, false],
    ["another processor", { os: ["linux"], cpu: ["arm64"] }, false],
    ["another C library", { libc: ["musl"] }, false],
    ["all but this system", { os: ["!linux"] }, false],
    ["all but another", { os: ["!win32"] }, true],
  ])("has %s judged as npm does", (_, entry, expected) => {
    const text = JSON.stringify({ packages: { "": {}, "node_modules/x": entry } });
    expect(lockedPackages(text).map((each) => isFor(each, machine))).toEqual([expected]);
  });
});

describe("the configuration of Renovate", () => {
  it("names only packages that are dependencies", () => {
    const { packageRules }: { readonly packageRules: readonly Rule[] } = JSON.parse(
      readRoot("renovate.json"),
    );
    const named = packageRules.flatMap(({ matchPackageNames = [] }) => matchPackageNames);
    const known = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies)];
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
    expect(named).toEqual(expect.arrayContaining(Object.keys(manifest.peerDependencies)));
  });
});

interface Rule {
  readonly matchPackageNames?: readonly string[];
}
