/**
 * `npm run docs`: writes the generated parts of the documents in place, and the native engine's
 * table of rejections.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GENERATED_PAGES, withGeneratedBlocks } from "./docs.ts";
import { RUST_TABLE, rustRejections } from "./rust-rejections.ts";
import { ROOT } from "./source-tree.ts";

for (const page of GENERATED_PAGES.keys()) {
  const file = join(ROOT, page);
  writeFileSync(file, withGeneratedBlocks(readFileSync(file, "utf8")));
}
writeFileSync(join(ROOT, RUST_TABLE), rustRejections());
