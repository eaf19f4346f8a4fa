/** Which file of a Rust crate imports which other one, read from the text alone. */

import { dirname, join } from "node:path/posix";

/** One file imports another; both by their path below `src`. */
export interface RustImport {
  readonly from: string;
  readonly to: string;
  /** Whether it is in a test module, or in the file of one. */
  readonly isTest: boolean;
}

/** A module, and its own part of a file's text. */
interface Module {
  readonly file: string;
  readonly text: string;
  readonly isTest: boolean;
}

const DECLARED =
  /^((?: *#\[[^\n]*\]\n| *\/\/[^\n]*\n)*)(?:pub(?:\([a-z]+\))? )?mod (\w+)(;| \{\n([\s\S]*?)^\})/gm;

/** All imports of the crate whose files these are: text by path below `src`, from `lib.rs` on. */
export function rustImports(files: ReadonlyMap<string, string>): RustImport[] {
  const modules = modulesOf(files);
  const found = new Map<string, RustImport>();
  for (const [path, { file, text, isTest }] of modules) {
    for (const named of pathsOf(text)) {
      const to = fileOf(absolute(named, path), modules);
      if (to === undefined || to === file) continue;
      found.set(`${file} ${to} ${isTest}`, { from: file, to, isTest });
    }
  }
  return [...found.values()];
}

/** The files of an import cycle, in order; empty where there is none. */
export function circleOf(imports: readonly RustImport[]): string[] {
  const next = new Map<string, string[]>();
  for (const { from, to } of imports) next.set(from, [...(next.get(from) ?? []), to]);
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): string[] => {
    const at = way.indexOf(file);
    if (at >= 0) return way.slice(at);
    if (done.has(file)) return [];
    for (const to of next.get(file) ?? []) {
      const circle = visit(to, [...way, file]);
      if (circle.length > 0) return circle;
    }
    done.add(file);
    return [];
  };
  for (const file of next.keys()) {
    const circle = visit(file, []);
    if (circle.length > 0) return circle;
  }
  return [];
}

/** The modules by their paths, `lib.rs` as an empty one. */
function modulesOf(files: ReadonlyMap<string, string>): Map<string, Module> {
  const modules = new Map<string, Module>();
  const add = (path: string, file: string, whole: string, wasTest: boolean): void => {
    const text = whole.replace(DECLARED, "");
    modules.set(path, { file, text: bare(text), isTest: wasTest });
    for (const [, attributes = "", name = "", end = "", body = ""] of whole.matchAll(DECLARED)) {
      const isTest = wasTest || /#\[cfg\((?:all\()?test\b/.test(attributes);
      const below = path === "" ? name : `${path}::${name}`;
      if (end !== ";") {
        add(below, file, body.replace(/^ {4}/gm, ""), isTest);
        continue;
      }
      const given = /#\[path = "([^"]+)"\]/.exec(attributes)?.[1];
      const folder = /(?:^|\/)(?:mod|lib)\.rs$/.test(file) ? dirname(file) : file.slice(0, -3);
      const places =
        given === undefined
          ? [join(folder, `${name}.rs`), join(folder, name, "mod.rs")]
          : [join(dirname(file), given)];
      // Of the tests outside of `src`, which use no module of it.
      if (places.every((each) => each.startsWith("../tests/support/"))) continue;
      const place = places.find((each) => files.has(each));
      if (place === undefined) throw new Error(`${file} declares ${name}, which has no file`);
      add(below, place, files.get(place) ?? "", isTest);
    }
  };
  add("", "lib.rs", files.get("lib.rs") ?? "", false);
  return modules;
}

/** Without comments and string literals. */
function bare(text: string): string {
  return text.replace(/\/\/[^\n]*/g, "").replace(/"(?:[^"\\\n]|\\.)*"/g, '""');
}

/** Every path from `crate`, `super` or `self`, those of a group in braces one by one. */
function pathsOf(text: string): string[] {
  const paths: string[] = [];
  for (const match of text.matchAll(/\b(?:crate|super|self)::(?:\w+::)*(?:\{|\*|\w+)/g)) {
    const path = match[0];
    const end = match.index + path.length;
    if (path.endsWith("{")) paths.push(...groupedPaths(path.slice(0, -1), text.slice(end)));
    else paths.push(path);
  }
  return paths;
}

/** The paths of a group, whose prefix and brace stand before `text`. */
function groupedPaths(prefix: string, text: string): string[] {
  const prefixes = [prefix];
  const paths: string[] = [];
  for (const [part] of text.matchAll(/(?:\w+::)*(?:\w+|\*|\{)|\}/g)) {
    if (part === "}") prefixes.pop();
    else if (part.endsWith("{")) prefixes.push(`${prefixes.at(-1)}${part.slice(0, -1)}`);
    else paths.push(`${prefixes.at(-1)}${part}`);
    if (prefixes.length === 0) break;
  }
  return paths;
}

/** Resolves a path from the module at `at` to the crate's root. */
function absolute(path: string, at: string): string[] {
  const parts = path.split("::").filter((part) => part !== "");
  const base = parts[0] === "crate" || at === "" ? [] : at.split("::");
  while (["crate", "self", "super"].includes(parts[0] ?? "")) {
    if (parts.shift() === "super") base.pop();
  }
  return [...base, ...parts];
}

/** The file of the module that the path leads to or into; none for items of the root itself. */
function fileOf(path: readonly string[], modules: ReadonlyMap<string, Module>): string | undefined {
  for (let size = path.length; size > 0; size--) {
    const module = modules.get(path.slice(0, size).join("::"));
    if (module !== undefined) return module.file;
  }
  return undefined;
}
