/** The crates that the native engine is made of, by what cargo resolves for one target. */

import { execFileSync } from "node:child_process";
import { dirname } from "node:path";

/**
 * What is linked into the library. What runs in the compiler is not part of it, nor what only that
 * needs; a macro's own crate is listed, because it writes code.
 *
 * @param {string} folder with the library's Cargo.toml
 * @param {string} target such as "x86_64-unknown-linux-gnu"
 * @returns {{
 *   name: string, version: string, license: string | null, repository: string | null,
 *   folder: string,
 * }[]} without the library itself
 */
export function linkedCrates(folder, target) {
  const { packages, resolve } = metadata(folder, target);
  const byId = new Map(packages.map((each) => [each.id, each]));
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const ids = new Set();
  const waiting = [resolve.root];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (ids.has(id)) continue;
    ids.add(id);
    if (byId.get(id).targets.some(({ kind }) => kind.includes("proc-macro"))) continue;
    for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) {
      if (kinds.some(({ kind }) => kind === null)) waiting.push(pkg);
    }
  }
  ids.delete(resolve.root);
  return [...ids].map((id) => {
    const { name, version, license, repository, manifest_path: manifest } = byId.get(id);
    return { name, version, license, repository, folder: dirname(manifest) };
  });
}

function metadata(folder, target) {
  const args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
  const text = execFileSync("cargo", args, {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(text);
}
