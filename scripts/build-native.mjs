/**
 * Builds the native engine and puts it where `src/native/load.ts` looks: native/touchdown.node,
 * with the types that napi derived beside it and a stamp of the sources that it was built from.
 *
 * While the stamp fits there is nothing to do. Without a cargo that is new enough it says so and
 * exits with 0: the portable engine needs no compiler. If the build fails, it exits with 1.
 * `--required` is for a release: without such a cargo it exits with 1 too.
 * `--timeout SECONDS` is for commands that can do without the engine: a build that fails or takes
 * longer is reported, and the exit code is 0; what was compiled by then is kept for the next build.
 * Cargo's folder is in the user's cache, so that the dependencies are compiled once a machine.
 */

import { spawn, spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { cargoTarget, declarationsOf, stampOf } from "./native-files.mjs";

const native = join(dirname(dirname(fileURLToPath(import.meta.url))), "native");
const addon = join(native, "touchdown.node");
const types = join(native, "touchdown.d.ts");
const stampFile = join(native, "touchdown.stamp");

const { values } = parseArgs({
  options: { timeout: { type: "string" }, required: { type: "boolean", default: false } },
});
const timeoutMs = values.timeout === undefined ? null : Number(values.timeout) * 1000;

const target = cargoTarget();

function say(what) {
  process.stdout.write(`native engine: ${what}\n`);
}

function libraryOf(platform) {
  if (platform === "darwin") return "libtouchdown_native.dylib";
  return platform === "win32" ? "touchdown_native.dll" : "libtouchdown_native.so";
}

/** Runs the compiler in a process group of its own, so that all of it can be ended. */
function compile(typesFolder) {
  return new Promise((resolve) => {
    const child = spawn("cargo", ["build", "--release", "--locked"], {
      cwd: native,
      detached: true,
      env: {
        ...process.env,
        CARGO_TARGET_DIR: target,
        NAPI_TYPE_DEF_TMP_FOLDER: typesFolder,
      },
      stdio: ["ignore", "inherit", "inherit"],
    });
    const end = (signal) => {
      try {
        process.kill(-child.pid, signal);
      } catch {
        // It ended by itself in the same moment.
      }
    };
    let late = false;
    const timer =
      timeoutMs === null
        ? null
        : setTimeout(() => {
            late = true;
            end("SIGTERM");
          }, timeoutMs);
    // Ctrl-C reaches this process only.
    process.once("SIGINT", () => {
      end("SIGTERM");
      process.exit(130);
    });
    child.once("error", () => resolve("failed"));
    child.once("exit", (code) => {
      clearTimeout(timer);
      resolve(late ? "late" : code === 0 ? "built" : "failed");
    });
  });
}

/** A process may have the old file open: a rename leaves it whole, a copy over it does not. */
function place(release, typesFile, stamp) {
  copyFileSync(join(release, libraryOf(process.platform)), `${addon}.new`);
  renameSync(`${addon}.new`, addon);
  writeFileSync(types, declarationsOf(readFileSync(typesFile, "utf8")));
  writeFileSync(stampFile, stamp);
}

async function build(version) {
  const stamp = stampOf(native, [version, process.platform, process.arch]);
  const present = [addon, types, stampFile].every((file) => existsSync(file));
  if (present && readFileSync(stampFile, "utf8") === stamp) {
    say("up to date");
    return 0;
  }
  say("compiling, about a minute when nothing is compiled yet");
  // A new folder each time: cargo compiles anew when the variable changes, and only a compilation
  // writes the types.
  const typesFolder = mkdtempSync(join(tmpdir(), "touchdown-types-"));
  try {
    const result = await compile(typesFolder);
    if (result !== "built") return without(result);
    place(join(target, "release"), join(typesFolder, "touchdown-native"), stamp);
  } finally {
    rmSync(typesFolder, { recursive: true });
  }
  say("built");
  return 0;
}

/** What an edge has without this build. */
function left() {
  return existsSync(addon) ? "the one built before remains" : "the portable engine remains";
}

/** Goes on with what there is, or fails. */
function without(result) {
  if (result === "late") say(`not built within ${timeoutMs / 1000} s; ${left()}`);
  else say(`the build failed; ${left()}`);
  if (timeoutMs === null) return 1;
  say("`npm run build` builds it to the end");
  return 0;
}

/** Why this cargo builds nothing; null for one that is new enough. */
function unfit({ error, status, stdout }) {
  if (error !== undefined) return "there is no cargo";
  const found = /^cargo (\d+)\.(\d+)/.exec(stdout);
  if (status !== 0 || found === null) return "cargo does not run";
  const manifest = readFileSync(join(native, "Cargo.toml"), "utf8");
  const least = /^rust-version = "(\d+)\.(\d+)"$/m.exec(manifest);
  const [major, minor] = [1, 2].map((part) => Number(found[part]) - Number(least?.[part] ?? 0));
  if (major > 0 || (major === 0 && minor >= 0)) return null;
  return `cargo is ${found[1]}.${found[2]}, ${least[1]}.${least[2]} or newer is needed`;
}

const cargo = spawnSync("cargo", ["--version"], { cwd: native, encoding: "utf8" });
const why = unfit(cargo);
if (why === null) process.exitCode = await build(cargo.stdout);
else {
  say(`not built, because ${why}; ${left()}`);
  if (values.required) process.exitCode = 1;
}
