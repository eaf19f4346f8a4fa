/** What the manifests, the documents and the SBOM of a release say. */

import { posix } from "node:path";

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
 * Options of GNU tar with which the same files make the same tarball, whoever makes it. With a
 * umask of 077, as hardened hosts have it, the user of a service could read none of them.
 *
 * @param {string} epoch seconds since 1970 that date the files
 */
export function tarOptions(epoch) {
  const owner = ["--owner=0", "--group=0", "--numeric-owner"];
  return ["--sort=name", ...owner, "--mode=u=rwX,go=rX", `--mtime=@${epoch}`];
}

/**
 * The program's package. Each engine is an optional peer, as the sandbox's packages are already: npm
 * checks the version of one that is installed beside the program, and never fetches one. As an
 * optional dependency npm would ask its registry for the engines that were not given, whose names
 * are not ours there yet.
 *
 * @param {Record<string, unknown>} manifest package.json
 * @param {readonly string[]} cpus the processors that this release has an engine for
 */
export function mainManifest(manifest, cpus) {
  const { private: _, scripts, devDependencies, ...kept } = manifest;
  const engines = cpus.map((cpu) => [ENGINES[cpu].package, manifest.version]);
  return {
    ...kept,
    files: manifest.files.filter((path) => path !== "native"),
    peerDependencies: { ...manifest.peerDependencies, ...Object.fromEntries(engines) },
    peerDependenciesMeta: {
      ...manifest.peerDependenciesMeta,
      ...Object.fromEntries(engines.map(([name]) => [name, { optional: true }])),
    },
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
 * A Markdown document of the release: a link to a file that is not beside it leads to the
 * repository, at the version's tag.
 *
 * @param {string} text the document's
 * @param {string} path the document's, from the root
 * @param {readonly string[]} shipped the files and folders beside it, from the root
 * @param {{ version: string, repository: { url: string } }} manifest package.json
 */
export function withLinksOutside(text, path, shipped, { version, repository }) {
  const base = repository.url.replace(/^git\+/, "").replace(/\.git$/, "");
  return text.replaceAll(/\]\(([^)#\s]+)(#[^)\s]*)?\)/g, (link, to, fragment = "") => {
    if (/^[a-z]+:/.test(to)) return link;
    const target = posix.join(posix.dirname(path), to);
    const isShipped = shipped.some((each) => target === each || target.startsWith(`${each}/`));
    return isShipped ? link : `](${base}/blob/v${version}/${target}${fragment})`;
  });
}

/**
 * npm's SBOM of the program: named as the package, which npm names after its folder, with the
 * packages that an installation for production has on the release's systems, and no others.
 *
 * @template {{ "bom-ref": string }} Component
 * @param {{
 *   metadata: { component: object },
 *   components: Component[],
 *   dependencies: { ref: string, dependsOn: string[] }[],
 * }} sbom CycloneDX 1.5
 * @param {string} name of the package
 * @param {ReadonlySet<string>} shipped NAME@VERSION of each of those packages
 * @throws Error if npm's lacks one
 */
export function programInSbom(sbom, name, shipped) {
  const { component } = sbom.metadata;
  const root = component["bom-ref"];
  const isShipped = (ref) => ref === root || shipped.has(ref);
  const listed = new Set(sbom.components.map((each) => each["bom-ref"]));
  const missing = [...shipped].filter((ref) => !listed.has(ref));
  if (missing.length > 0) throw new Error(`npm's SBOM lacks ${missing.join(", ")}`);
  return {
    ...sbom,
    metadata: { ...sbom.metadata, component: { ...component, type: "application", name } },
    components: sbom.components.filter((each) => isShipped(each["bom-ref"])),
    dependencies: sbom.dependencies
      .filter(({ ref }) => isShipped(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isShipped) })),
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
