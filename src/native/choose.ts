/**
 * Which engine an edge runs: the native one where it is built, unless the operator says otherwise.
 */

import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { NativeEngine } from "./contract.ts";
import { loadNative, type NativeLoad } from "./load.ts";

export type EngineChoice =
  | { readonly name: "native"; readonly native: NativeEngine }
  | { readonly name: "portable"; readonly native: null };

const PORTABLE: EngineChoice = { name: "portable", native: null };

/** @throws SetupError when the native engine is asked for by name and is not to be had */
export function chooseEngine(
  wanted: "auto" | "native" | "portable",
  log: Log,
  load: () => NativeLoad = loadNative,
): EngineChoice {
  if (wanted === "portable") return PORTABLE;
  const loaded = load();
  if (loaded.kind === "loaded") return { name: "native", native: loaded.native };
  const why =
    loaded.kind === "absent"
      ? "it is not built: run `npm run build` where cargo is"
      : `${loaded.path} does not load: ${String(loaded.cause)}`;
  if (wanted === "native") throw new SetupError(`send.engine: the native engine: ${why}`);
  if (loaded.kind === "broken") log.warn({ cause: String(loaded.cause) }, "no native engine");
  return PORTABLE;
}
