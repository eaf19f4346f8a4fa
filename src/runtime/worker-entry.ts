/**
 * Where the built file of a thread's entry is, even where its user runs as source: a thread of Node
 * 20 cannot load TypeScript. `npm run build` comes first.
 */

import { resolve, sep } from "node:path";

/** The file of that name in `folder`, or in the folder's twin below dist when that is in src. */
export function compiledPath(folder: string, name: string): string {
  const parts = folder.split(sep);
  const source = parts.lastIndexOf("src");
  if (source !== -1 && parts.lastIndexOf("dist") < source) parts[source] = "dist";
  return resolve(parts.join(sep), name);
}
