/**
 * Which module of the Rust crate may import which other one, so that the folders of `native/src`
 * keep their responsibilities. Test modules may import more, and are not part of cycles.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { circleOf, type RustImport, rustImports } from "../support/rust-modules.ts";
import { listFiles, ROOT } from "../support/source-tree.ts";

/** By folder of `native/src`, or by file next to them: what it may import. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  node: ["decode", "http", "quic", "quic_server", "submit", "sync"],
  submit: ["decode", "http", "quic", "quic_server", "sync"],
  http: ["decode", "quic_server", "sync"],
  quic_server: ["decode", "quic", "sync"],
  quic: ["decode", "sync"],
  decode: ["ed25519", "sync"],
  ed25519: [],
  sync: [],
  lib: [],
};

const SRC = "native/src";

/** The folder below `native/src`, or the name of a file next to them. */
const roomOf = (path: string): string => path.replace(/\.rs$/, "").split("/")[0] ?? "";

/** Imports from one folder to another that the table does not have. */
const breaches = (imports: readonly RustImport[]): string[] =>
  imports
    .filter(({ from, to }) => roomOf(from) !== roomOf(to))
    .filter(({ from, to }) => !ARROWS[roomOf(from)]?.includes(roomOf(to)))
    .map(({ from, to }) => `${from} -> ${to}`);

describe("the modules of the Rust crate", () => {
  const paths = listFiles(SRC, ".rs").map((path) => path.slice(SRC.length + 1));
  const files = new Map(paths.map((path) => [path, readFileSync(join(ROOT, SRC, path), "utf8")]));
  const imports = rustImports(files);
  const shipped = imports.filter(({ isTest }) => !isTest);

  it("have an entry in the table", () => {
    expect([...new Set(paths.map(roomOf))].sort()).toEqual(Object.keys(ARROWS).sort());
    expect(shipped.length).toBeGreaterThan(200);
  });

  it("import only what the table allows", () => {
    expect(breaches(shipped)).toEqual([]);
  });

  it("use every arrow of the table", () => {
    const used = new Set(shipped.map(({ from, to }) => `${roomOf(from)} ${roomOf(to)}`));
    const listed = Object.entries(ARROWS).flatMap(([from, all]) =>
      all.map((to) => `${from} ${to}`),
    );
    expect(listed.filter((arrow) => !used.has(arrow))).toEqual([]);
  });

  it("have no import cycle", () => {
    expect(circleOf(imports)).toEqual([]);
  });

  it("leave ed25519 free of the crate, its tests too", () => {
    const out = imports.filter(
      ({ from, to }) => roomOf(from) === "ed25519" && roomOf(to) !== "ed25519",
    );
    expect(out).toEqual([]);
  });
});

describe("a violation", () => {
  const crate = (texts: Readonly<Record<string, string>>) => {
    const sound = {
      "lib.rs": "pub mod sync;\npub mod ed25519;\npub mod quic;\n",
      "sync.rs": "pub const NEVER: usize = 1;\n",
      "ed25519/mod.rs": "pub mod curve;\npub mod verify;\n",
      "ed25519/curve.rs": "pub struct Point;\n",
      "ed25519/verify.rs": "use super::curve::Point;\n",
      "quic/mod.rs": "//! `crate::ed25519` is not imported.\npub mod engine;\npub mod peer;\n",
      "quic/engine.rs": "use crate::quic::peer::{self, Peer};\nuse crate::sync::NEVER;\n",
      "quic/peer.rs": '#[cfg(test)]\n#[path = "peer_tests.rs"]\nmod tests;\n',
      "quic/peer_tests.rs": "use super::*;\nuse crate::quic::engine::Engine;\n",
    };
    return rustImports(new Map(Object.entries({ ...sound, ...texts })));
  };
  const told = (imports: readonly RustImport[]) =>
    imports.map(({ from, to, isTest }) => `${from} -> ${to}${isTest ? " (test)" : ""}`);

  it("is not reported without one", () => {
    expect(told(crate({}))).toEqual([
      "ed25519/verify.rs -> ed25519/curve.rs",
      "quic/engine.rs -> quic/peer.rs",
      "quic/engine.rs -> sync.rs",
      "quic/peer_tests.rs -> quic/peer.rs (test)",
      "quic/peer_tests.rs -> quic/engine.rs (test)",
    ]);
    expect(breaches(crate({}))).toEqual([]);
    expect(circleOf(crate({}))).toEqual([]);
  });

  it.each([
    ["by its full path", "use crate::sync::NEVER;\n"],
    ["by the folder above", "use super::super::sync;\n"],
    ["in a group", "use crate::{\n    ed25519::curve::{Point, *},\n    sync::NEVER,\n};\n"],
    ["without use", "fn never() -> usize { crate::sync::NEVER }\n"],
    ["behind a module inside", "mod inner {\n    use super::super::super::sync;\n}\n"],
  ])("of the table is found: %s", (_, text) => {
    expect(breaches(crate({ "ed25519/verify.rs": text }))).toEqual([
      "ed25519/verify.rs -> sync.rs",
    ]);
  });

  it("in a test module is recognized", () => {
    const text = "#[cfg(test)]\nmod tests {\n    use super::*;\n    use crate::sync::NEVER;\n}\n";
    const found = crate({ "ed25519/curve.rs": text }).filter(({ to }) => to === "sync.rs");
    expect(told(found)).toContain("ed25519/curve.rs -> sync.rs (test)");
  });

  it("by a cycle is found, also inside a folder", () => {
    const imports = crate({ "quic/peer.rs": "use super::engine::Engine;\n" });
    expect(breaches(imports)).toEqual([]);
    expect(circleOf(imports)).toEqual(["quic/engine.rs", "quic/peer.rs"]);
  });
});
