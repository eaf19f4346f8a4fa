import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");

let folder = "";
/**
 * A project with the build script and its own native folder, so that the repository's is untouched.
 */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-build-"));
  cpSync(join(ROOT, "scripts"), join(folder, "scripts"), { recursive: true });
  mkdirSync(join(folder, "native/src"), { recursive: true });
  mkdirSync(join(folder, "bin"));
  for (const file of ["Cargo.toml", "Cargo.lock", "build.rs", "src/lib.rs"]) {
    writeFileSync(join(folder, "native", file), `# ${file}\n`);
  }
  writeFileSync(join(folder, "native/Cargo.toml"), 'edition = "2024"\nrust-version = "1.89"\n');
});
afterEach(() => rmSync(folder, { recursive: true }));

const LIBRARY = process.platform === "darwin" ? "dylib" : "so";
const TYPES = '{"kind":"fn","name":"stop","js_doc":"","def":"function stop(): number"}';
const BUILDS = `mkdir -p "$CARGO_TARGET_DIR/release"
echo library > "$CARGO_TARGET_DIR/release/libtouchdown_native.${LIBRARY}"
echo '${TYPES}' > "$NAPI_TYPE_DEF_TMP_FOLDER/touchdown-native"
echo compiled`;

/** Runs the script with a cargo that does `what` when it must build; null: without any. */
function run(what: string | null, ...args: readonly string[]) {
  return runWith("echo cargo 1.89.0", what, ...args);
}

/** The same with a cargo that reports this version. */
function runWith(version: string, what: string | null, ...args: readonly string[]) {
  const bin = join(folder, "bin");
  rmSync(join(bin, "cargo"), { force: true });
  if (what !== null) {
    const body = `#!/bin/sh\nif [ "$1" = --version ]; then ${version}; exit; fi\n${what}\n`;
    writeFileSync(join(bin, "cargo"), body);
    chmodSync(join(bin, "cargo"), 0o755);
  }
  const script = join(folder, "scripts/build-native.mjs");
  const path = what === null ? bin : `${bin}:/usr/bin:/bin`;
  const { status, stdout } = spawnSync(process.execPath, [script, ...args], {
    encoding: "utf8",
    env: { PATH: path, CARGO_TARGET_DIR: join(folder, "target") },
  });
  return { status, lines: stdout.trim().split("\n") };
}

describe("building the native engine", () => {
  it("reports that it needs cargo, and succeeds without", () => {
    expect(run(null)).toEqual({
      status: 0,
      lines: ["native engine: not built, because there is no cargo; the portable engine remains"],
    });
  });

  it("reports an old cargo, or one that does not run", () => {
    for (const [version, why] of [
      ["echo cargo 1.75.0 2023-11-20", "cargo is 1.75, 1.89 or newer is needed"],
      ["echo cargo 0.99.0", "cargo is 0.99, 1.89 or newer is needed"],
      // As rustup's does without a toolchain.
      ["exit 1", "cargo does not run"],
    ] as const) {
      expect(runWith(version, "exit 101")).toEqual({
        status: 0,
        lines: [`native engine: not built, because ${why}; the portable engine remains`],
      });
    }
    for (const newer of ["1.100.0-nightly", "2.0.0"]) {
      expect(runWith(`echo cargo ${newer}`, "exit 101").status).toBe(1);
    }
  });

  it("fails without a cargo that is new enough where the engine is required", () => {
    for (const { status, lines } of [
      run(null, "--required"),
      runWith("echo cargo 1.75.0", "exit 101", "--required"),
    ]) {
      expect(status).toBe(1);
      expect(lines).toEqual([expect.stringMatching(/^native engine: not built, because .*cargo/)]);
    }
    expect(run(BUILDS, "--required").status).toBe(0);
    expect(run(BUILDS, "--required").lines).toEqual(["native engine: up to date"]);
  });

  it.skipIf(process.arch !== "x64")("is required for a release", () => {
    writeFileSync(join(folder, "native/touchdown.node"), "of other sources");
    const script = join(folder, "scripts/release.mjs");
    const { status, stderr } = spawnSync(process.execPath, [script, "--out", join(folder, "out")], {
      encoding: "utf8",
      env: { PATH: join(folder, "bin") },
    });
    expect(status).toBe(1);
    expect(stderr).toContain("there is no cargo; the one built before remains");
  });

  it("fails when the compiler does", () => {
    const { status, lines } = run("exit 101");
    expect([status, lines.at(-1)]).toEqual([
      1,
      "native engine: the build failed; the portable engine remains",
    ]);
  });

  it("continues without the addon where allowed, when the compiler fails or times out", () => {
    const failed = run("exit 101", "--timeout", "60");
    expect(failed.status).toBe(0);
    expect(failed.lines).toContain("native engine: `npm run build` builds it to the end");
    const late = run("exec sleep 60", "--timeout", "0.3");
    expect(late.status).toBe(0);
    expect(late.lines).toContain(
      "native engine: not built within 0.3 s; the portable engine remains",
    );
  });

  it("compiles once, and again only when a source has changed", () => {
    expect(run(BUILDS).lines).toEqual([
      "native engine: compiling, about a minute when nothing is compiled yet",
      "compiled",
      "native engine: built",
    ]);
    expect(run(BUILDS).lines).toEqual(["native engine: up to date"]);
    writeFileSync(join(folder, "native/src/lib.rs"), "// changed\n");
    const failed = run("exit 101", "--timeout", "60");
    expect(failed.lines).toContain("native engine: the build failed; the one built before remains");
    expect(run(BUILDS).lines).toContain("compiled");
    rmSync(join(folder, "native/touchdown.node"));
    expect(run(BUILDS).lines).toContain("compiled");
  });
});
