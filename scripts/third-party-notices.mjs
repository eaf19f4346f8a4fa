/**
 * Writes THIRD_PARTY_NOTICES: what an edge and the control process install from npm, the crates that
 * the native engine links, and what the dashboard's pages contain, with their licences' texts.
 *
 * Names and versions are the lockfiles'; the texts come from the installed packages and from cargo's
 * folder, so run it after `npm ci`. A package that only another version of Node installs has no text
 * then. Crates of Cargo.lock that are not part of the engine, because only tests or other systems
 * need them, are listed without a text, so that the file names every locked crate.
 */

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { linkedCrates } from "./linked-crates.mjs";
import { isFor, lockedCrates, lockedPackages, machineOf } from "./locked-packages.mjs";
import { noticesText } from "./notices-text.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const TARGET = "x86_64-unknown-linux-gnu";

const HEAD = `Third-party notices

Touchdown is distributed together with the software listed here, or installs it. Each line has the
name, the version, the licence and, in brackets, the numbers of its texts below; for a package that
carries no such file, the line says where it comes from. Made by \`npm run notices\`.
`;

function readRoot(path) {
  return readFileSync(join(root, path), "utf8");
}

/** The texts of a package's licence, and of what it says beside it. */
function textsIn(folder, license) {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder)
    .filter((name) => /^(?:licen[cs]e|copying|copyright|notice|unlicense)/i.test(name))
    .sort();
  return chosen(files, license).map((name) => readFileSync(join(folder, name), "utf8"));
}

/** Where one may choose, MIT is chosen: its file, and the notices that belong to any of them. */
function chosen(files, license) {
  const mit = files.filter((name) => /^licen[cs]e-mit/i.test(name));
  const mayChoose = /\bMIT\b/.test(license) && /\bOR\b|\//.test(license);
  if (!mayChoose || mit.length === 0) return files;
  return [...files.filter((name) => /^(?:copyright|notice)/i.test(name)), ...mit];
}

function installed() {
  const machine = machineOf(readRoot("package.json"));
  return lockedPackages(readRoot("package-lock.json"))
    .filter((each) => !each.dev && isFor(each, machine))
    .map(noticeOf);
}

/** uPlot is copied into the pages, so it is no dependency of the program. */
function inPages() {
  return lockedPackages(readRoot("package-lock.json"))
    .filter(({ name }) => name === "uplot")
    .map(noticeOf);
}

function noticeOf({ place, name, version, license }) {
  const folder = join(root, place);
  const texts = textsIn(folder, license);
  return { name, version, texts, license: withSource(license, texts, repositoryIn(folder)) };
}

/** A licence whose text is not at hand names where the package comes from. */
function withSource(license, texts, repository) {
  return texts.length > 0 || repository === null ? license : `${license}, ${repository}`;
}

function repositoryIn(folder) {
  const manifest = join(folder, "package.json");
  if (!existsSync(manifest)) return null;
  const { repository } = JSON.parse(readFileSync(manifest, "utf8"));
  const url = typeof repository === "string" ? repository : repository?.url;
  return url?.replace(/^git\+/, "").replace(/\.git$/, "") ?? null;
}

/** The crates that the library is made of, and those that are locked for something else. */
function crates() {
  const packages = linkedCrates(join(root, "native"), TARGET);
  const linked = packages.map(({ name, version, license, repository, folder }) => {
    const texts = textsIn(folder, license ?? "see its text");
    const named = withSource(license ?? "see its text", texts, repository);
    return { name, version, texts, license: named };
  });
  const known = new Set(linked.map(({ name, version }) => `${name} ${version}`));
  const others = lockedCrates(readRoot("native/Cargo.lock"))
    .filter(({ name, version }) => !known.has(`${name} ${version}`))
    .map(({ name, version }) => ({ name, version, license: null, texts: [] }));
  return { linked, others };
}

const { linked, others } = crates();
const text = noticesText(HEAD, [
  { title: "npm packages that an edge installs (linux, x64, glibc)", packages: installed() },
  { title: "Copied into the dashboard's pages", packages: inPages() },
  { title: "Crates that the native engine links", packages: linked },
  { title: "Crates of native/Cargo.lock that are not part of it", packages: others },
]);
writeFileSync(join(root, "THIRD_PARTY_NOTICES"), text);
