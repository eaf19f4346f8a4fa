/** The clients know the refusals of the table of `src/core`. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { clientReasons } from "../support/client-reasons.ts";
import { ROOT } from "../support/source-tree.ts";

it.each(Object.entries(clientReasons()))("%s is what npm run docs writes", (file, text) => {
  expect(readFileSync(join(ROOT, file), "utf8")).toBe(text);
});
