/**
 * Loads the native engine: native/touchdown.node, where `npm run build` puts it, or the npm package
 * with a built one that belongs to a release.
 *
 * A missing file is no error here: a caller that requires the native engine makes it one. A file
 * that is not an engine of this version is reported with the cause.
 */

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { CONTRACT_VERSION, type NativeEngine } from "./contract.ts";

/** The addon, or the reason why there is none. */
export type NativeLoad =
  | { readonly kind: "loaded"; readonly native: NativeEngine }
  | { readonly kind: "absent"; readonly path: string }
  | { readonly kind: "broken"; readonly path: string; readonly cause: unknown };

/** The same relative path from `src/native` and from `dist/native`. */
const BUILT_PATH = join(import.meta.dirname, "../../native/touchdown.node");
/** A release's package of the engine; the same names are in scripts/release-files.mjs. */
export const NATIVE_PACKAGE = nativePackageFor(process.arch);

/** The name of the package for a processor, which is named as Node names it. */
export function nativePackageFor(cpu: string): string {
  return `touchdown-native-linux-${cpu}-gnu`;
}

/** Where the addon is, or would be built. */
export const ADDON_PATH = existsSync(BUILT_PATH) ? BUILT_PATH : (packagedPath() ?? BUILT_PATH);

function packagedPath(): string | null {
  try {
    return createRequire(import.meta.url).resolve(NATIVE_PACKAGE);
  } catch {
    // No such package is installed.
    return null;
  }
}

/** Loads the addon into this thread; its state belongs to the process. */
export function loadNative(path: string = ADDON_PATH): NativeLoad {
  if (!existsSync(path)) return { kind: "absent", path };
  try {
    const native: Partial<NativeEngine> = createRequire(import.meta.url)(path);
    const version = native.contractVersion?.() ?? "unknown";
    if (version !== CONTRACT_VERSION) {
      throw new TypeError(`it is version ${version}, not ${CONTRACT_VERSION}: build it again`);
    }
    // One of this version has every function: test/native compares them with the contract.
    const engine = native as NativeEngine;
    return { kind: "loaded", native: withOwnProperties(engine) };
  } catch (cause) {
    return { kind: "broken", path, cause };
  }
}

/** By the addon's export object. */
const BY_ADDON = new WeakMap<NativeEngine, NativeEngine>();

/** One object per thread: the addon's export object is slow to use, see runtime/fast-object.ts. */
function withOwnProperties(engine: NativeEngine): NativeEngine {
  const plain = BY_ADDON.get(engine) ?? { ...engine };
  BY_ADDON.set(engine, plain);
  return plain;
}
