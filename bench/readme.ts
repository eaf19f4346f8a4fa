/**
 * Writes the measured parts of docs/benchmarks.md: each stands between `<!-- measured: NAME -->`
 * and `<!-- end measured -->`.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const DOCUMENT = join(import.meta.dirname, "../docs/benchmarks.md");

/** Replaces one part; an Error if the document has no such part. */
export function writeMeasured(name: string, text: string): void {
  const document = readFileSync(DOCUMENT, "utf8");
  const openingMarker = `<!-- measured: ${name} -->\n`;
  const start = document.indexOf(openingMarker);
  const end = document.indexOf("<!-- end measured -->", start);
  if (start < 0 || end < 0) throw new Error(`docs/benchmarks.md has no part measured: ${name}`);
  writeFileSync(
    DOCUMENT,
    `${document.slice(0, start)}${openingMarker}${text}\n${document.slice(end)}`,
  );
}
