/**
 * What the lockfiles say: each npm package, which of them a machine installs, and each crate.
 */

/**
 * The packages of a lockfile, in its order, each once for every place that it is installed at.
 *
 * @param {string} text the lockfile's
 * @returns {{
 *   place: string, name: string, version: string, license: string, integrity: string | null,
 *   dev: boolean, os: string[], cpu: string[], libc: string[],
 * }[]}
 */
export function lockedPackages(text) {
  const { packages } = JSON.parse(text);
  return Object.entries(packages)
    .filter(([place]) => place !== "")
    .map(([place, entry]) => ({
      place,
      // An alias names the package that is behind it.
      name: entry.name ?? place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length),
      version: entry.version,
      license: entry.license ?? "see its text",
      integrity: entry.integrity ?? null,
      dev: entry.dev === true,
      os: listOf(entry.os),
      cpu: listOf(entry.cpu),
      libc: listOf(entry.libc),
    }));
}

/**
 * Whether npm installs the package on a machine, whichever version of Node it has.
 *
 * @param {{ os: string[], cpu: string[], libc: string[] }} entry
 * @param {{ os: string, cpu: string, libc: string }} machine
 */
export function isFor(entry, machine) {
  return (
    allows(entry.os, machine.os) &&
    allows(entry.cpu, machine.cpu) &&
    allows(entry.libc, machine.libc)
  );
}

/**
 * The machine that releases are complete for: with the first processor that a manifest names.
 *
 * @param {string} text package.json's
 * @throws Error unless it names one os, one libc and a cpu
 */
export function machineOf(text) {
  const [os, cpu, libc] = ["os", "cpu", "libc"].map((name) => listOf(JSON.parse(text)[name]));
  if (os.length !== 1 || libc.length !== 1 || cpu.length === 0) {
    throw new Error("package.json does not name one os, one libc and a cpu");
  }
  return { os: os[0], cpu: cpu[0], libc: libc[0] };
}

/**
 * The crates of a Cargo.lock that come from elsewhere.
 *
 * @param {string} text the lockfile's
 * @returns {{ name: string, version: string }[]}
 */
export function lockedCrates(text) {
  return [...text.matchAll(/^name = "(.+)"\nversion = "(.+)"\nsource = /gm)].map(
    ([, name, version]) => ({ name, version }),
  );
}

/** npm takes one word for a list of one. */
function listOf(value) {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

/** An empty list allows all; "!x" all but x. */
function allows(list, value) {
  if (list.includes(`!${value}`)) return false;
  const named = list.filter((each) => !each.startsWith("!"));
  return named.length === 0 || named.includes(value);
}
