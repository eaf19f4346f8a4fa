/**
 * The addon, or null where `npm run build` found no cargo; throws for a broken one.
 */

import type { NativeEngine } from "../../src/native/contract.ts";
import { loadNative } from "../../src/native/load.ts";

function load(): NativeEngine | null {
  const found = loadNative();
  if (found.kind === "broken") throw found.cause;
  return found.kind === "loaded" ? found.native : null;
}

export const native = load();
