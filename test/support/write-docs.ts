/** `npm run docs`: writes the generated parts of the README in place. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withGeneratedBlocks } from "./docs.ts";
import { ROOT } from "./source-tree.ts";

const file = join(ROOT, "README.md");
writeFileSync(file, withGeneratedBlocks(readFileSync(file, "utf8")));
