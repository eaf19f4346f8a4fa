/** What the manifests and the SBOM of a release say. */

/**
 * The machines that a release has an engine for, by npm's name of their processor: the package that
 * contains `touchdown.node`, which `src/native/load.ts` looks for, and what cargo compiles for.
 *
 * @type {Readonly<Record<string, { package: string, target: string }>>}
 */
export const ENGINES = {
  x64: { package: "touchdown-native-linux-x64-gnu", target: "x86_64-unknown-linux-gnu" },
  arm64: { package: "touchdown-native-linux-arm64-gnu", target: "aarch64-unknown-linux-gnu" },
};

/**
 * The program's package. Each engine is an optional peer: npm checks the version of one that is
 * installed beside the program, and never fetches one. As an optional dependency npm would ask its
 * registry for the engines that were not given, whose names are not ours there yet.
 *
 * @param {Record<string, unknown>} manifest package.json
 * @param {readonly string[]} cpus the processors that this release has an engine for
 */
export function mainManifest(manifest, cpus) {
  const {
    private: _,
    scripts,
    devDependencies,
    peerDependencies: __,
    peerDependenciesMeta: ___,
    ...kept
  } = manifest;
  const engines = cpus.map((cpu) => [ENGINES[cpu].package, manifest.version]);
  return {
    ...kept,
    files: manifest.files.filter((path) => path !== "native"),
    peerDependencies: Object.fromEntries(engines),
    peerDependenciesMeta: Object.fromEntries(engines.map(([name]) => [name, { optional: true }])),
  };
}

/** The package of the engine for one processor. */
export function nativeManifest({ version, license, repository, os, libc }, cpu) {
  return {
    name: ENGINES[cpu].package,
    version,
    description: `Touchdown's native engine for Linux on ${cpu} with glibc.`,
    license,
    repository,
    os,
    cpu: [cpu],
    libc,
    main: "touchdown.node",
    files: ["touchdown.node", "LICENSE", "NOTICE", "THIRD_PARTY_NOTICES"],
  };
}

/**
 * Crates as components of CycloneDX 1.5, each once.
 *
 * @param {{ name: string, version: string, license: string | null }[]} crates
 */
export function cratesInSbom(crates) {
  const each = new Map(crates.map((crate) => [`${crate.name}@${crate.version}`, crate]));
  return [...each.values()].map(({ name, version, license }) => ({
    "bom-ref": `cargo:${name}@${version}`,
    type: "library",
    name,
    version,
    scope: "required",
    purl: `pkg:cargo/${name}@${version}`,
    ...(license !== null && { licenses: [{ expression: license.replaceAll("/", " OR ") }] }),
  }));
}
