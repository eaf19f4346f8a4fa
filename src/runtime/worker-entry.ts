/**
 * Locates the built file of a thread's entry, even where its user runs as source: a Node 20 thread
 * cannot load TypeScript. Run `npm run build` first.
 */

import { resolve, sep } from "node:path";

/**
 * The path of `name` in `folder`, or in the corresponding folder of dist when `folder` is in src.
 */
export function compiledPath(folder: string, name: string): string {
  const parts = folder.split(sep);
  const source = parts.lastIndexOf("src");
  if (source !== -1 && parts.lastIndexOf("dist") < source) parts[source] = "dist";
  return resolve(parts.join(sep), name);
}
