/** The version of the package, for answers, metrics and the command line. */

import { readFileSync } from "node:fs";

function readVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const read: unknown = JSON.parse(text);
  const isPackage = typeof read === "object" && read !== null && "version" in read;
  return isPackage && typeof read.version === "string" ? read.version : "unknown";
}

export const VERSION = readVersion();
