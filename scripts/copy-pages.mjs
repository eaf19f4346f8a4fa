/**
 * Puts what the dashboard serves beside what tsc built: the pages as they are, which no compiler
 * touches, and uPlot's script and style sheet, so that a page fetches nothing from elsewhere. The
 * script is the form that makes a global, because it is a third of the size of the module.
 */

import { copyFileSync, cpSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const from = join(root, "src", "control", "pages");
const to = join(root, "dist", "control", "pages");
const uplot = join(root, "node_modules", "uplot", "dist");
const vendor = join(to, "vendor");

rmSync(to, { recursive: true, force: true });
cpSync(from, to, { recursive: true });
mkdirSync(vendor, { recursive: true });
for (const name of ["uPlot.iife.min.js", "uPlot.min.css"]) {
  copyFileSync(join(uplot, name), join(vendor, name));
}
