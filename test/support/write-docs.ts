/** `npm run docs`: writes the generated parts of the documents in place. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GENERATED_PAGES, withGeneratedBlocks } from "./docs.ts";
import { ROOT } from "./source-tree.ts";

for (const page of GENERATED_PAGES.keys()) {
  const file = join(ROOT, page);
  writeFileSync(file, withGeneratedBlocks(readFileSync(file, "utf8")));
}
