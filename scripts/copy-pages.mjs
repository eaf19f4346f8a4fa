/**
 * Puts what the dashboard serves beside what tsc built: the pages as they are, which no compiler
 * touches, and uPlot's module and style sheet, so that a page fetches nothing from elsewhere.
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
copyFileSync(join(uplot, "uPlot.esm.js"), join(vendor, "uplot.esm.js"));
copyFileSync(join(uplot, "uPlot.min.css"), join(vendor, "uplot.min.css"));
