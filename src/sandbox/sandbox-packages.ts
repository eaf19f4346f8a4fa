/**
 * The packages that only the sandbox needs. They are optional peer dependencies, as a release's
 * engines are: a clone has them as development dependencies, a production installation omits
 * them. This file imports none of them, so that the command line can check for them before it
 * loads the sandbox.
 */

import { readFileSync } from "node:fs";
import { SetupError } from "../core/errors.ts";

/**
 * Returns if all of them are installed.
 *
 * @throws SetupError with the command that installs the missing ones
 */
export function requireSandboxPackages(
  has: (name: string) => boolean = isInstalled,
  peers: Readonly<Record<string, string>> = peersOfThis(),
): void {
  const missing = Object.entries(peers).filter(([name]) => !isEngine(name) && !has(name));
  if (missing.length === 0) return;
  const names = missing.map(([name]) => name).join(", ");
  const exact = missing.map(([name, version]) => `${name}@${version}`).join(" ");
  throw new SetupError(
    `an installation for production goes without packages that the sandbox needs (${names}); ` +
      `this adds them:\n\n  ${INSTALL} ${exact}\n`,
  );
}

/**
 * npm omits development dependencies, even if requested by name: `--save-prod` makes it treat them
 * as another kind, and `--no-save` leaves package.json unchanged.
 */
const INSTALL = "npm install --no-save --save-prod --omit=dev";

/** Whether it is a release's package of the native engine. */
function isEngine(name: string): boolean {
  return name.startsWith("touchdown-native-");
}

function peersOfThis(): Readonly<Record<string, string>> {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  // The project's own file: names to exact versions.
  const { peerDependencies } = JSON.parse(text) as { peerDependencies: Record<string, string> };
  return peerDependencies;
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    // Node cannot resolve the package from here.
    return false;
  }
}
