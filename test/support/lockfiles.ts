/** The lockfiles as `scripts/locked-packages.mjs` reads them, with types. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./source-tree.ts";

export interface Locked {
  /** From the project's root, as `node_modules/x`. */
  readonly place: string;
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly integrity: string | null;
  readonly dev: boolean;
  readonly os: readonly string[];
  readonly cpu: readonly string[];
  readonly libc: readonly string[];
}

export interface Machine {
  readonly os: string;
  readonly cpu: string;
  readonly libc: string;
}

interface Script {
  lockedPackages(text: string): readonly Locked[];
  lockedCrates(text: string): readonly { readonly name: string; readonly version: string }[];
  isFor(entry: Pick<Locked, "os" | "cpu" | "libc">, machine: Machine): boolean;
  machineOf(text: string): Machine;
}

const script = new URL("../../scripts/locked-packages.mjs", import.meta.url);
// Plain JavaScript without types.
export const { isFor, lockedCrates, lockedPackages, machineOf } = (await import(
  script.href
)) as Script;

/** A file of the project. */
export const readRoot = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** The one that belongs to package.json. */
export const machine = machineOf(readRoot("package.json"));

/** What that machine installs with the development dependencies, with any Node version. */
export const installed = lockedPackages(readRoot("package-lock.json")).filter((each) =>
  isFor(each, machine),
);
