/**
 * `npm run docs`: writes the generated parts of the documents in place, the documents of the API in
 * docs/api, and the tables of rejections of the native engine and of the clients.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiDocuments } from "./api-documents.ts";
import { clientReasons } from "./client-reasons.ts";
import { GENERATED_PAGES, withGeneratedBlocks } from "./docs.ts";
import { RUST_TABLE, rustRejections } from "./rust-rejections.ts";
import { ROOT } from "./source-tree.ts";

for (const page of GENERATED_PAGES.keys()) {
  const file = join(ROOT, page);
  writeFileSync(file, withGeneratedBlocks(readFileSync(file, "utf8")));
}
const files = { ...apiDocuments(), ...clientReasons() };
for (const [file, text] of Object.entries(files)) writeFileSync(join(ROOT, file), text);
writeFileSync(join(ROOT, RUST_TABLE), rustRejections());
