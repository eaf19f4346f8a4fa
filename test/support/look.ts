/**
 * Checks a page at two widths and in both colour schemes. Saves screenshots to
 * `test/browser/shots`; axe must find nothing, and nothing may overflow horizontally.
 */

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { ROOT } from "./source-tree.ts";

const SHOTS = join(ROOT, "test", "browser", "shots");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCHEMES = ["light", "dark"] as const;
/** 320 is required by WCAG 1.4.10. */
const WIDTHS = [320, 1280];

/** Runs in the page; a string, because its globals are not typed here. */
const RUN_AXE = `
  axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations
      .map(({ id, nodes }) => id + ": " + nodes.map((node) => node.html).join(" ")),
  )`;
const TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth";

/** `name` is the name of the screenshots. Restores the page's width at the end. */
export async function lookAt(page: Page, name: string): Promise<void> {
  mkdirSync(SHOTS, { recursive: true });
  const before = page.viewportSize();
  for (const scheme of SCHEMES) {
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: width < 500 ? 844 : 900 });
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      const path = join(SHOTS, `${name}-${width}-${scheme}.png`);
      // Content behind an open dialog is limited to the window size.
      const fullPage = (await page.locator("dialog[open]").count()) === 0;
      await page.screenshot({ path, fullPage, animations: "disabled" });
      expect([name, scheme, width, await findings(page)]).toEqual([name, scheme, width, []]);
      const overflow = [name, width, "px too wide:", await page.evaluate(TOO_WIDE)];
      expect(overflow).toEqual([name, width, "px too wide:", 0]);
    }
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  if (before !== null) await page.setViewportSize(before);
}

/** The findings of axe, one line each. */
async function findings(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  return await page.evaluate<string[]>(RUN_AXE);
}

/** Waits until nothing is loading or rendering. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main h1").first().waitFor();
  await expect.poll(() => page.locator(".bones").count()).toBe(0);
}
