/** Chooses an edge's engine: the native one if it is built, unless the operator sets another. */

import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { NativeEngine } from "./contract.ts";
import { loadNative, NATIVE_PACKAGE, type NativeLoad } from "./load.ts";

export type EngineChoice =
  | { readonly name: "native"; readonly native: NativeEngine }
  | { readonly name: "portable"; readonly native: null };

/** What an operator without the native engine does. */
export const NATIVE_ADVICE = `run \`npm run build\` where cargo is, or install ${NATIVE_PACKAGE}`;

/** For quiche 0.18, which `@matrixai/quic` 2.0.9 contains; checked on 2026-11-24. */
const PORTABLE_WARNING =
  "the portable engine is for development and for machines without a compiler: its QUIC library, " +
  "quiche 0.18, has known faults with which a hostile leader can fill this machine's memory " +
  "(CVE-2024-1410, CVE-2024-1765; repaired in 0.20.1); for the native engine " +
  NATIVE_ADVICE;

/**
 * Warns whenever it chooses the portable engine.
 *
 * @throws SetupError when the configuration requires the native engine and it is not available
 */
export function chooseEngine(
  wanted: "auto" | "native" | "portable",
  log: Log,
  load: () => NativeLoad = loadNative,
): EngineChoice {
  if (wanted === "portable") return portable(log);
  const loaded = load();
  if (loaded.kind === "loaded") return { name: "native", native: loaded.native };
  const why =
    loaded.kind === "absent"
      ? `it is not built: ${NATIVE_ADVICE}`
      : `${loaded.path} does not load: ${String(loaded.cause)}`;
  if (wanted === "native") throw new SetupError(`send.engine: the native engine: ${why}`);
  if (loaded.kind === "broken") log.warn({ cause: String(loaded.cause) }, "no native engine");
  return portable(log);
}

function portable(log: Log): EngineChoice {
  log.warn({}, PORTABLE_WARNING);
  return { name: "portable", native: null };
}
