/**
 * What the build of the native engine reads and writes beside the library: a stamp of its sources,
 * TypeScript declarations of what napi says that the library exports, and cargo's folder.
 */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, relative } from "node:path";

/** Cargo's folder: in the user's cache, unless CARGO_TARGET_DIR names another one. */
export function cargoTarget() {
  const { CARGO_TARGET_DIR: chosen, XDG_CACHE_HOME: cache } = process.env;
  return chosen ?? join(cache ?? join(homedir(), ".cache"), "touchdown", "native-target");
}

/** Files and folders of `native/` that the library is made from. */
const SOURCES = ["Cargo.toml", "Cargo.lock", "build.rs", "src"];

/** Changes with every source file of the library, and with each of `more`. */
export function stampOf(native, more) {
  const hash = createHash("sha256");
  for (const source of SOURCES) {
    for (const path of filesOf(join(native, source))) {
      const bytes = readFileSync(path);
      hash.update(`${relative(native, path)} ${bytes.length}\n`).update(bytes);
    }
  }
  for (const each of more) hash.update(`${each}\n`);
  return `${hash.digest("hex").slice(0, 32)}\n`;
}

/** The file, or all files below the folder, always in the same order. */
function filesOf(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true })
    .sort()
    .map((name) => join(path, name))
    .filter((file) => statSync(file).isFile());
}

/**
 * The declarations, from the lines of JSON that napi's macro leaves while the library is compiled.
 *
 * @throws Error on a kind of item that has no place in the contract
 */
export function declarationsOf(lines) {
  const items = lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const texts = items.map(({ kind, name, def, js_doc: doc }) => {
    if (kind === "interface") return `${doc}export interface ${name} {\n${indented(def)}\n}\n`;
    if (kind === "fn") return `${doc}export ${def};\n`;
    throw new Error(`the library exports ${name}, which is a ${kind}`);
  });
  return `${texts.join("\n")}`;
}

function indented(def) {
  return def
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n");
}
