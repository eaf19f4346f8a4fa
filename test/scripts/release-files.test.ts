import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
  withLinksOutside(
    text: string,
    path: string,
    shipped: readonly string[],
    manifest: Manifest & { readonly repository: { readonly url: string } },
  ): string;
  tarOptions(epoch: string): readonly string[];
  programInSbom(sbom: object, name: string, shipped: ReadonlySet<string>): object;
  cratesInSbom(crates: readonly Crate[]): readonly object[];
}

// A script of the build has no types of its own.
const path = "../../scripts/release-files.mjs";
const {
  ENGINES,
  cratesInSbom,
  mainManifest,
  nativeManifest,
  programInSbom,
  tarOptions,
  withLinksOutside,
}: Script = await import(path);
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
      expect(main["peerDependencies"]).toMatchObject(
        Object.fromEntries(names.map((name) => [name, manifest.version])),
      );
      expect(main["peerDependenciesMeta"]).toMatchObject(
        Object.fromEntries(names.map((name) => [name, { optional: true }])),
      );
      expect(JSON.stringify(main["optionalDependencies"] ?? {})).not.toContain("touchdown");
    }
  });
});

describe("the tarball of a release", () => {
  it("can be read by every user, whatever the umask of who made it", () => {
    const folder = mkdtempSync(join(tmpdir(), "touchdown-tar-"));
    writeFileSync(join(folder, "program"), "", { mode: 0o700 });
    writeFileSync(join(folder, "text"), "", { mode: 0o600 });
    const words = ["-cf", "-", "-C", folder, "."];
    const packed = spawnSync("tar", [...tarOptions("0"), ...words]).stdout;
    const listed = spawnSync("tar", ["-tvf", "-"], { input: packed, encoding: "utf8" }).stdout;
    rmSync(folder, { recursive: true });
    expect(listed.match(/^\S+/gm)).toEqual(["drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"]);
  });
});

describe("the sandbox's packages in a release", () => {
  it("are optional peers with their versions, which `sandbox` asks for by name", () => {
    expect(mainManifest(manifest, ["x64"])).toMatchObject({
      peerDependencies: manifest["peerDependencies"],
      peerDependenciesMeta: manifest["peerDependenciesMeta"],
    });
  });
});

describe("the links of a document in the tarball", () => {
  const shipped = ["docs", "README.md"];
  const linked = (to: string) =>
    withLinksOutside(`see [it](${to}).`, "docs/deploy.md", shipped, {
      ...manifest,
      version: "1.2.3",
      repository: { url: "git+https://example.org/touchdown.git" },
    });

  it.each(["api.md#x", "../README.md", "#here", "https://example.org/a", "mailto:a@example.org"])(
    "stay as they are: %s",
    (to) => {
      expect(linked(to)).toBe(`see [it](${to}).`);
    },
  );

  it.each([
    ["../src/edge/edge.ts", "src/edge/edge.ts"],
    ["../bench/README.md#results", "bench/README.md#results"],
    ["../docs-old/a.md", "docs-old/a.md"],
  ])("lead to the version in the repository: %s", (to, path) => {
    expect(linked(to)).toBe(`see [it](https://example.org/touchdown/blob/v1.2.3/${path}).`);
  });
});

describe("the program in the SBOM", () => {
  const component = (ref: string) => ({ "bom-ref": ref, name: ref });
  const sbom = {
    metadata: { component: { ...component("touchdown@1.2.3"), name: "folder", type: "library" } },
    components: ["a@1", "for-windows@1", "b@2"].map(component),
    dependencies: [
      { ref: "touchdown@1.2.3", dependsOn: ["a@1", "for-windows@1"] },
      { ref: "a@1", dependsOn: ["b@2"] },
      { ref: "for-windows@1", dependsOn: [] },
      { ref: "b@2", dependsOn: [] },
    ],
  };

  it("has the package's name, and the packages that its systems install", () => {
    expect(programInSbom(sbom, "touchdown", new Set(["a@1", "b@2"]))).toEqual({
      metadata: {
        component: { ...component("touchdown@1.2.3"), name: "touchdown", type: "application" },
      },
      components: ["a@1", "b@2"].map(component),
      dependencies: [
        { ref: "touchdown@1.2.3", dependsOn: ["a@1"] },
        { ref: "a@1", dependsOn: ["b@2"] },
        { ref: "b@2", dependsOn: [] },
      ],
    });
  });
});

it("an SBOM without a package that is shipped is an error", () => {
  const sbom = {
    metadata: { component: { "bom-ref": "touchdown@1.2.3" } },
    components: [{ "bom-ref": "a@1" }],
    dependencies: [],
  };
  expect(() => programInSbom(sbom, "touchdown", new Set(["a@1", "b@2"]))).toThrow(/lacks b@2$/);
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
