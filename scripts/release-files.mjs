/** What the manifests and the SBOM of a release say. */

/** Contains `touchdown.node`; `src/native/load.ts` looks there too. */
export const NATIVE_PACKAGE = "touchdown-native-linux-x64-gnu";

/**
 * The program's package. The engine is an optional dependency, so that npm installs it where it runs
 * and the program alone elsewhere.
 *
 * @param {Record<string, unknown>} manifest package.json
 */
export function mainManifest(manifest) {
  const {
    private: _,
    scripts,
    devDependencies,
    peerDependencies,
    peerDependenciesMeta,
    ...kept
  } = manifest;
  return {
    ...kept,
    files: manifest.files.filter((path) => path !== "native"),
    optionalDependencies: { ...manifest.optionalDependencies, [NATIVE_PACKAGE]: manifest.version },
  };
}

/** The engine's package, for the one machine that the program's manifest names. */
export function nativeManifest({ version, license, repository, os, cpu, libc }) {
  return {
    name: NATIVE_PACKAGE,
    version,
    description: "Touchdown's native engine for Linux on x64 with glibc.",
    license,
    repository,
    os,
    cpu,
    libc,
    main: "touchdown.node",
    files: ["touchdown.node", "LICENSE", "NOTICE", "THIRD_PARTY_NOTICES"],
  };
}

/**
 * Crates as components of CycloneDX 1.5.
 *
 * @param {{ name: string, version: string, license: string | null }[]} crates
 */
export function cratesInSbom(crates) {
  return crates.map(({ name, version, license }) => ({
    "bom-ref": `cargo:${name}@${version}`,
    type: "library",
    name,
    version,
    scope: "required",
    purl: `pkg:cargo/${name}@${version}`,
    ...(license !== null && { licenses: [{ expression: license.replaceAll("/", " OR ") }] }),
  }));
}
