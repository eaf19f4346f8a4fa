import { describe, expect, it } from "vitest";
import { NATIVE_PACKAGE } from "../../src/native/load.ts";
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
  mainManifest(manifest: Manifest): Manifest;
  nativeManifest(manifest: Manifest): Manifest;
  cratesInSbom(crates: readonly Crate[]): readonly object[];
}

// A script of the build has no types of its own.
const path = "../../scripts/release-files.mjs";
const { mainManifest, nativeManifest, cratesInSbom }: Script = await import(path);
const manifest: Manifest = JSON.parse(readRoot("package.json"));

describe("the packages of a release", () => {
  it("are the program, which may be published and builds nothing", () => {
    const main = mainManifest(manifest);
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

  it("and the engine of the same version, which the program looks for, where it can run", () => {
    expect(mainManifest(manifest)["optionalDependencies"]).toEqual({
      [NATIVE_PACKAGE]: manifest.version,
    });
    expect(nativeManifest(manifest)).toMatchObject({
      name: NATIVE_PACKAGE,
      version: manifest.version,
      os: ["linux"],
      cpu: ["x64"],
      libc: ["glibc"],
      main: "touchdown.node",
    });
  });
});

describe("the crates in the SBOM", () => {
  it("are named by package URL, with the licence as an SPDX expression", () => {
    const [one, other] = cratesInSbom([
      { name: "ring", version: "0.17.14", license: "MIT/Apache-2.0" },
      { name: "unnamed", version: "1.0.0", license: null },
    ]);
    expect(one).toMatchObject({
      purl: "pkg:cargo/ring@0.17.14",
      licenses: [{ expression: "MIT OR Apache-2.0" }],
    });
    expect(other).not.toHaveProperty("licenses");
  });
});
