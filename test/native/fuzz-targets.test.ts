/**
 * The fuzz targets compile, and with them the engine as a plain Rust library, which the benches of
 * `bench/compare` link too; and each target has a corpus that `cargo test` replays. Runs with the
 * native engine's suite, because that one needs cargo anyway: half a minute of one processor once
 * per machine, then a few seconds.
 */

import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { ENGINE } from "../support/flow.ts";
import { ROOT } from "../support/source-tree.ts";

const FUZZ = join(ROOT, "native", "fuzz");
const MANIFEST = join(FUZZ, "Cargo.toml");
const TARGET = process.env["CARGO_TARGET_DIR"] ?? join(homedir(), ".cache/touchdown/native-target");
const run = promisify(execFile);

const targets = readdirSync(join(FUZZ, "fuzz_targets")).map((file) => file.replace(".rs", ""));

describe("the fuzz targets", () => {
  it("are each registered with cargo, and have a corpus that a Rust test reads", () => {
    const manifest = readFileSync(MANIFEST, "utf8");
    const named = [...manifest.matchAll(/\[\[bin\]\]\nname = "(\w+)"/g)].map(([, name]) => name);
    expect(named.sort()).toEqual([...targets].sort());
    expect(readdirSync(join(FUZZ, "corpus")).sort()).toEqual([...targets].sort());
    const folder = join(ROOT, "native", "tests");
    const files = readdirSync(folder).filter((file) => file.endsWith(".rs"));
    const tests = files.map((file) => readFileSync(join(folder, file), "utf8")).join("\n");
    for (const name of targets) expect(tests).toContain(`/fuzz/corpus/${name}"`);
  });

  it.runIf(ENGINE === "native")("compile, and so does the engine without the addon", async () => {
    // A check links nothing, so libFuzzer itself is not compiled for it, nor this file read.
    const env = { ...process.env, CARGO_TARGET_DIR: TARGET, CUSTOM_LIBFUZZER_PATH: MANIFEST };
    const args = ["check", "--release", "--locked", "--manifest-path", MANIFEST];
    const { stderr } = await run("cargo", args, { env });
    expect(stderr).toContain("Finished");
  });
});
