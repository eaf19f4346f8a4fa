/** The addon, or null where `npm run build` found no cargo; a broken one is an error. */

import type { NativeEngine } from "../../src/native/contract.ts";
import { loadNative } from "../../src/native/load.ts";

function load(): NativeEngine | null {
  const found = loadNative();
  if (found.kind === "broken") throw found.cause;
  return found.kind === "loaded" ? found.native : null;
}

export const native = load();
