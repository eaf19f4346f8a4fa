import { describe, expect, it } from "vitest";
import { nativePackageFor } from "../../src/native/load.ts";
import { readRoot } from "../support/lockfiles.ts";

interface Manifest {
  readonly version: string;
  readonly files: readonly string[];
  readonly [field: string]: unknown;
}

interface Crate {
  readonly name: string;
  readonly version: string;
  readonly license: string | null;
}

interface Script {
  readonly ENGINES: Readonly<Record<string, { readonly package: string }>>;
  mainManifest(manifest: Manifest, cpus: readonly string[]): Manifest;
  nativeManifest(manifest: Manifest, cpu: string): Manifest;
  cratesInSbom(crates: readonly Crate[]): readonly object[];
}

// A script of the build has no types of its own.
const path = "../../scripts/release-files.mjs";
const { ENGINES, mainManifest, nativeManifest, cratesInSbom }: Script = await import(path);
const manifest: Manifest = JSON.parse(readRoot("package.json"));

describe("the packages of a release", () => {
  it("are the program, which may be published and builds nothing", () => {
    const main = mainManifest(manifest, ["x64"]);
    expect(main).toMatchObject({
      name: "touchdown",
      version: manifest.version,
      bin: { touchdown: "dist/main.js" },
      dependencies: manifest["dependencies"],
    });
    expect(Object.keys(main)).not.toContain("private");
    expect(Object.keys(main)).not.toContain("scripts");
    expect(Object.keys(main)).not.toContain("devDependencies");
    expect(main.files).toContain("dist");
    expect(main.files).not.toContain("native");
  });

  it.each(["x64", "arm64"])("and the engine of its version, where %s can run it", (cpu) => {
    expect(nativeManifest(manifest, cpu)).toMatchObject({
      name: nativePackageFor(cpu),
      version: manifest.version,
      description: expect.stringContaining(cpu),
      os: ["linux"],
      cpu: [cpu],
      libc: ["glibc"],
      main: "touchdown.node",
    });
  });

  it("name the engines that were made, as peers, which npm does not fetch", () => {
    expect(Object.keys(ENGINES)).toEqual(manifest["cpu"]);
    for (const cpus of [["x64"], ["x64", "arm64"]]) {
      const names = cpus.map(nativePackageFor);
      const main = mainManifest(manifest, cpus);
      expect(main["peerDependencies"]).toEqual(
        Object.fromEntries(names.map((name) => [name, manifest.version])),
      );
      expect(main["peerDependenciesMeta"]).toEqual(
        Object.fromEntries(names.map((name) => [name, { optional: true }])),
      );
      expect(JSON.stringify(main["optionalDependencies"] ?? {})).not.toContain("touchdown");
    }
  });
});

describe("the crates in the SBOM", () => {
  it("are named by package URL, with the licence as an SPDX expression", () => {
    const [one, other, ...more] = cratesInSbom([
      { name: "ring", version: "0.17.14", license: "MIT/Apache-2.0" },
      { name: "unnamed", version: "1.0.0", license: null },
      // Of the engine for another processor.
      { name: "ring", version: "0.17.14", license: "MIT/Apache-2.0" },
    ]);
    expect(more).toEqual([]);
    expect(one).toMatchObject({
      purl: "pkg:cargo/ring@0.17.14",
      licenses: [{ expression: "MIT OR Apache-2.0" }],
    });
    expect(other).not.toHaveProperty("licenses");
  });
});
