/**
 * Puts what the dashboard serves beside what tsc built, or into the folder that is named: the pages
 * as they are, which no compiler touches, and uPlot's script, style sheet and licence, so that a page
 * fetches nothing from elsewhere. The script is the form that makes a global, because it is a third
 * of the size of the module. Beside each file lies its compressed form, which is what browsers get.
 */

import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const from = join(root, "src", "control", "pages");
const to = process.argv[2] ?? join(root, "dist", "control", "pages");
const uplot = join(root, "node_modules", "uplot");
const vendor = join(to, "vendor");

rmSync(to, { recursive: true, force: true });
cpSync(from, to, { recursive: true });
mkdirSync(vendor, { recursive: true });
for (const name of ["uPlot.iife.min.js", "uPlot.min.css"]) {
  copyFileSync(join(uplot, "dist", name), join(vendor, name));
}
copyFileSync(join(uplot, "LICENSE"), join(vendor, "uPlot.LICENSE.txt"));
for (const name of readdirSync(to, { recursive: true })) {
  if (!/\.(?:js|css|html|svg)$/.test(name)) continue;
  const path = join(to, name);
  writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
}
