/**
 * Loads uWebSockets.js, the HTTP library. Each of its binaries fits the ABI of one Node version,
 * and no release has binaries for all supported versions, so two releases are installed under two
 * names, and this module loads the one for the running Node and system (docs/uwebsockets.md).
 *
 * A package named `uWebSockets.js` has precedence: an operator who installs the upstream release
 * gets that one, on any Node. Where no binary fits, the import of this module rejects with a
 * `SetupError` that names the Node version or system to use.
 */

import { createRequire } from "node:module";
import type * as Published from "uws-node20";
import { codeOf, SetupError } from "../core/errors.ts";

export type App = Published.TemplatedApp;
export type HttpRequest = Published.HttpRequest;
export type HttpResponse = Published.HttpResponse;
export type ListenSocket = Published.us_listen_socket;

/** The library as its module exports it; its declarations lack the last two. */
export interface Uws extends Library {
  /** "silent" leaves the library's name out of responses. */
  _cfg(setting: string): void;
  /** Without it, a second edge on the same port silently gets half of the connections. */
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
}

type Library = Pick<typeof Published, "App" | "us_listen_socket_close" | "us_socket_local_port">;

/** The Node and the system that run this process. */
export interface Host {
  /** The version of Node, as `24.21.0`. */
  readonly node: string;
  /** Node's ABI, `process.versions.modules`. */
  readonly abi: string;
  readonly platform: string;
  readonly arch: string;
  /** The version of glibc, as `2.41`; null on a system without glibc. */
  readonly glibc: string | null;
}

export interface Sources {
  /** Whether the operator has installed a package of the name `uWebSockets.js`. */
  readonly hasUpstream: boolean;
  import(name: BuildName | typeof UPSTREAM): Promise<unknown>;
}

export type BuildName = "uws-node20" | "uws-node24";

const UPSTREAM = "uWebSockets.js";

/** The build that has the binary for an ABI: Node 20, 22, 23, 24 and 26, in this order. */
const BUILD_OF_ABI: ReadonlyMap<string, BuildName> = new Map([
  ["115", "uws-node20"],
  ["127", "uws-node20"],
  ["131", "uws-node20"],
  ["137", "uws-node24"],
  ["147", "uws-node24"],
]);

/** The glibc that `uws-node24` needs; the binaries of `uws-node20` need less than Node does. */
const GLIBC_OF_NODE24 = "2.38";
const NEW_SYSTEM = `glibc ${GLIBC_OF_NODE24} or newer (Debian 13, Ubuntu 24.04)`;

/**
 * Returns the build for a Node and a system.
 * @throws SetupError where none exists
 */
export function buildFor(host: Host): BuildName {
  const { node, abi, platform, arch, glibc } = host;
  const isLinux = platform === "linux";
  if (isLinux && arch !== "x64") {
    throw new SetupError(
      `npm has no binary of the HTTP library for Linux on ${arch}; the releases of its author ` +
        "have one for arm64, and docs/uwebsockets.md says how to install them",
    );
  }
  if (isLinux && glibc === null) {
    throw new SetupError(
      "the HTTP library needs glibc, which this system does not have: " +
        `use a system with ${NEW_SYSTEM}`,
    );
  }
  const fitsNode24 = glibc === null || isAtLeast(glibc, GLIBC_OF_NODE24);
  const build = BUILD_OF_ABI.get(abi);
  if (build === undefined) {
    const use = fitsNode24 ? "Node 24 or 26" : `Node 22, or Node 24 or 26 on ${NEW_SYSTEM}`;
    throw new SetupError(`the HTTP library has no binary for Node ${node}: use ${use}`);
  }
  if (build === "uws-node24" && !fitsNode24) {
    throw new SetupError(
      `on Node ${node} the HTTP library needs ${NEW_SYSTEM}, this system has ${glibc}: ` +
        "use such a system, or Node 22 on this one",
    );
  }
  return build;
}

/**
 * Loads the operator's package, or else the build that fits.
 * @throws SetupError where none fits, or the one that fits is not installed or does not load
 */
export async function loadUws(host: Host, sources: Sources): Promise<Uws> {
  const name = sources.hasUpstream ? UPSTREAM : buildFor(host);
  try {
    // The tests of `server.ts` use every named export.
    return (await sources.import(name)) as Uws;
  } catch (cause) {
    // The library's first error lists the supported versions; the cause of the failure follows.
    const why = /^Error: .*$/m.exec(String(cause instanceof Error ? cause.message : cause));
    const where = `Node ${host.node} on ${host.platform}-${host.arch}`;
    throw new SetupError(
      `${name} does not load on ${where}${why === null ? "" : ` (${why[0]})`}: ` +
        (name === UPSTREAM
          ? "install a release of it that has a binary for this Node, or remove it"
          : "run `npm ci` with the Node that runs the service, it installs the matching binary"),
      { cause },
    );
  }
}

/** Compares versions of two numbers, such as 2.41. */
function isAtLeast(version: string, minimum: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [majorMin = 0, minorMin = 0] = minimum.split(".").map(Number);
  return major > majorMin || (major === majorMin && minor >= minorMin);
}

function thisHost(): Host {
  const { platform, arch, versions } = process;
  return { node: versions.node, abi: versions.modules, platform, arch, glibc: glibcHere() };
}

function glibcHere(): string | null {
  const report: object & { readonly header?: { readonly glibcVersionRuntime?: string } } =
    process.report.getReport();
  return report.header?.glibcVersionRuntime ?? null;
}

function hasUpstream(): boolean {
  try {
    createRequire(import.meta.url).resolve(UPSTREAM);
    return true;
  } catch (error) {
    // A package that exists but cannot be used is reported when it is loaded.
    return codeOf(error) !== "MODULE_NOT_FOUND";
  }
}

const IMPORTS: Readonly<Record<BuildName | typeof UPSTREAM, () => Promise<unknown>>> = {
  "uws-node20": () => import("uws-node20"),
  "uws-node24": () => import("uws-node24"),
  [UPSTREAM]: () => import(UPSTREAM),
};

export const {
  App,
  us_listen_socket_close,
  us_socket_local_port,
  _cfg,
  LIBUS_LISTEN_EXCLUSIVE_PORT,
} = await loadUws(thisHost(), { hasUpstream: hasUpstream(), import: (name) => IMPORTS[name]() });
