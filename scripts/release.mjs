/**
 * Makes a release of this version for Linux with glibc, in the folder that `--out` names:
 *
 *   touchdown-VERSION.tgz                         npm package: the program without the engine
 *   touchdown-native-linux-x64-gnu-VERSION.tgz    npm package: the engine, an optional peer
 *   touchdown-native-linux-arm64-gnu-VERSION.tgz  the same for arm64, with `--arm64`
 *   touchdown-VERSION-linux-x64-gnu.tar.gz        all of it with its npm packages; needs only Node
 *   touchdown-VERSION.cdx.json                    SBOM (CycloneDX 1.5): npm packages and crates
 *   SHA256SUMS                                    of all these
 *
 * Builds first. A release without the native engine of these sources is an error. SOURCE_DATE_EPOCH, seconds since
 * 1970, dates the files in the tarball; without it they are of the last commit.
 *
 * Note: there is no tarball for arm64, because npm has no binary of the HTTP library for it
 * (docs/uwebsockets.md).
 */

import { execFileSync, spawnSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { linkedCrates } from "./linked-crates.mjs";
import { isFor, lockedPackages, machineOf } from "./locked-packages.mjs";
import { cargoTarget } from "./native-files.mjs";
import {
  cratesInSbom,
  ENGINES,
  mainManifest,
  nativeManifest,
  programInSbom,
  tarOptions,
  withLinksOutside,
} from "./release-files.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const LEGAL = ["LICENSE", "NOTICE", "THIRD_PARTY_NOTICES"];
const PROGRAM = ["dist", ...LEGAL, "CHANGELOG.md", "README.md"];
/** What the tarball has besides the engine and the npm packages. */
const TARBALL = [
  ...PROGRAM,
  ...["docs", "examples", "ops", "compose.yaml", "SECURITY.md"],
  ...["package.json", "package-lock.json", ".npmrc"],
];

/** What compiles the engine for arm64 on x64, in Debian's packages. */
const ARM64_COMPILER = "aarch64-linux-gnu-gcc";

const { values } = parseArgs({
  options: { out: { type: "string" }, arm64: { type: "boolean", default: false } },
});
if (values.out === undefined) {
  process.stderr.write("usage: npm run release -- --out FOLDER [--arm64]\n");
  process.exit(2);
}
if (process.arch !== "x64") {
  process.stderr.write(`release: releases are made on x64, this is ${process.arch}\n`);
  process.exit(1);
}
const cpus = values.arm64 ? ["x64", "arm64"] : ["x64"];
const missing = values.arm64 ? missingForArm64() : null;
if (missing !== null) {
  process.stderr.write(`release: --arm64: ${missing}\n`);
  process.exit(1);
}
const out = resolve(values.out);
mkdirSync(out, { recursive: true });
const staging = mkdtempSync(join(tmpdir(), "touchdown-release-"));

/** What to install first to compile for arm64; null when it is all there. */
function missingForArm64() {
  const { target } = ENGINES.arm64;
  const folder = spawnSync("rustc", ["--print", "target-libdir", "--target", target], {
    cwd: join(root, "native"),
    encoding: "utf8",
  });
  if (folder.status !== 0 || !existsSync(folder.stdout.trim())) {
    return `Rust's library for it is missing: rustup target add ${target}`;
  }
  // With a path, if the C library for it is there too.
  const found = spawnSync(ARM64_COMPILER, ["-print-file-name=crt1.o"], { encoding: "utf8" });
  if (found.status === 0 && found.stdout.includes("/")) return null;
  const packages = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross";
  return `${ARM64_COMPILER} or its C library is missing: apt-get install ${packages}`;
}

/** The engine for a processor: the one that was built, or one that is compiled for another. */
function engineFor(cpu) {
  if (cpu === "x64") return readFileSync(join(root, "native/touchdown.node"));
  const { target } = ENGINES[cpu];
  const folder = cargoTarget();
  execFileSync("cargo", ["build", "--release", "--locked", "--target", target], {
    cwd: join(root, "native"),
    env: {
      ...process.env,
      CARGO_TARGET_DIR: folder,
      CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER: ARM64_COMPILER,
    },
    stdio: ["ignore", "inherit", "inherit"],
  });
  return readFileSync(join(folder, target, "release/libtouchdown_native.so"));
}

function run(cwd, command, ...args) {
  return execFileSync(command, args, {
    cwd,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", "pipe", "inherit"],
  });
}

function copyTo(folder, paths) {
  for (const path of paths) cpSync(join(root, path), join(folder, path), { recursive: true });
}

/** What git has of the tarball's files, which a build may have added to. */
function copyTarball(folder, manifest) {
  copyTo(folder, ["dist"]);
  for (const path of run(root, "git", "ls-files", "-z", ...TARBALL).split("\0")) {
    if (path === "") continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    if (path.endsWith(".md")) writeDocument(folder, path, TARBALL, manifest);
    else cpSync(join(root, path), join(folder, path));
  }
}

/** A document beside these other files and folders. */
function writeDocument(folder, path, shipped, manifest) {
  const text = readFileSync(join(root, path), "utf8");
  writeFileSync(join(folder, path), withLinksOutside(text, path, shipped, manifest));
}

/** A staged npm package; returns the name of its file. */
function pack(name, manifest, fill) {
  const folder = join(staging, name);
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  fill(folder);
  const [packed] = JSON.parse(run(folder, "npm", "pack", "--json", "--pack-destination", out));
  return packed.filename;
}

/** Everything in one folder, as an operator unpacks it. */
function tarball(name, manifest) {
  const folder = join(staging, name);
  mkdirSync(folder);
  copyTarball(folder, manifest);
  mkdirSync(join(folder, "native"));
  cpSync(join(root, "native/touchdown.node"), join(folder, "native/touchdown.node"));
  run(folder, "npm", "ci", "--omit=dev", "--ignore-scripts", "--silent");
  addHttpBinaries(folder);
  const { SOURCE_DATE_EPOCH: epoch = run(root, "git", "log", "-1", "--format=%ct").trim() } =
    process.env;
  const file = `${name}.tar.gz`;
  run(staging, "tar", ...tarOptions(epoch), "-czf", join(out, file), name);
  return file;
}

/** npm installed the HTTP library's binary for the Node that runs it; adds those for the others. */
function addHttpBinaries(folder) {
  const machine = machineOf(readFileSync(join(folder, "package.json"), "utf8"));
  const locked = lockedPackages(readFileSync(join(folder, "package-lock.json"), "utf8"));
  for (const entry of locked) {
    const { place, name, version, integrity } = entry;
    const at = join(folder, place);
    if (!name.startsWith("@uwsjs/linux-") || !isFor(entry, machine) || existsSync(at)) continue;
    const packed = run(staging, "npm", "pack", "--json", `${name}@${version}`);
    const [{ filename, integrity: found }] = JSON.parse(packed);
    if (found !== integrity) {
      throw new Error(`${name}@${version} has checksum ${found}, package-lock.json ${integrity}`);
    }
    mkdirSync(at, { recursive: true });
    run(staging, "tar", "-xzf", filename, "--strip-components=1", "-C", at);
  }
}

function sbom(name, manifest) {
  // With --omit=dev npm leaves out what a development dependency needs too.
  const words = ["--sbom-format=cyclonedx", "--package-lock-only"];
  const made = JSON.parse(run(root, "npm", "sbom", ...words));
  const machine = machineOf(JSON.stringify(manifest));
  const shipped = lockedPackages(readFileSync(join(root, "package-lock.json"), "utf8"))
    .filter((entry) => !entry.dev && cpus.some((cpu) => isFor(entry, { ...machine, cpu })))
    .map(({ name: each, version }) => `${each}@${version}`);
  const ofNpm = programInSbom(made, manifest.name, new Set(shipped));
  const crates = cpus.flatMap((cpu) => linkedCrates(join(root, "native"), ENGINES[cpu].target));
  ofNpm.serialNumber = `urn:uuid:${randomUUID()}`;
  ofNpm.components.push(...cratesInSbom(crates));
  writeFileSync(join(out, name), `${JSON.stringify(ofNpm, null, 2)}\n`);
  return name;
}

try {
  // A build without a cargo that is new enough leaves the engine of other sources.
  const engine = join(root, "scripts/build-native.mjs");
  execFileSync(process.execPath, [engine, "--required"], { stdio: ["ignore", 2, 2] });
  run(root, "npm", "run", "--silent", "build:ts");
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const { version } = manifest;
  const files = [
    pack("touchdown", mainManifest(manifest, cpus), (folder) => {
      copyTo(folder, PROGRAM);
      for (const path of PROGRAM.filter((each) => each.endsWith(".md"))) {
        writeDocument(folder, path, PROGRAM, manifest);
      }
    }),
    ...cpus.map((cpu) =>
      pack(ENGINES[cpu].package, nativeManifest(manifest, cpu), (folder) => {
        copyTo(folder, LEGAL);
        writeFileSync(join(folder, "touchdown.node"), engineFor(cpu));
      }),
    ),
    tarball(`touchdown-${version}-linux-x64-gnu`, manifest),
    sbom(`touchdown-${version}.cdx.json`, manifest),
  ];
  const sums = files.map((file) => {
    const sum = createHash("sha256")
      .update(readFileSync(join(out, file)))
      .digest("hex");
    return `${sum}  ${file}\n`;
  });
  writeFileSync(join(out, "SHA256SUMS"), sums.join(""));
  for (const file of [...files, "SHA256SUMS"]) process.stdout.write(`${join(out, file)}\n`);
} finally {
  rmSync(staging, { recursive: true, force: true });
}
