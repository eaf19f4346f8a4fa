/**
 * Writes the parts of the README that benches measure: each stands between
 * `<!-- measured: NAME -->` and `<!-- end measured -->`.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const README = join(import.meta.dirname, "../README.md");

/** Replaces one part; an Error when the README has no such part. */
export function writeMeasured(name: string, text: string): void {
  const document = readFileSync(README, "utf8");
  const begin = `<!-- measured: ${name} -->\n`;
  const start = document.indexOf(begin);
  const end = document.indexOf("<!-- end measured -->", start);
  if (start < 0 || end < 0) throw new Error(`the README has no part measured: ${name}`);
  writeFileSync(README, `${document.slice(0, start)}${begin}${text}\n${document.slice(end)}`);
}
