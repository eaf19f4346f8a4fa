/**
 * A key is shown to somebody who logged in a moment ago. Who did not is sent to the provider and
 * comes back to where they were.
 */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { logIn, open, startChromium, visit } from "../support/chromium.ts";
import { type Dashboard, startDashboard } from "../support/dashboard.ts";

let site: Dashboard;
let browser: Browser;
beforeAll(async () => {
  const options = { recent_login: "10s" };
  [site, browser] = await Promise.all([startDashboard(options), startChromium()]);
});
afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

it("a login that is too old leads over a fresh one back to Connect", async () => {
  const grace = await visit(browser);
  const { page } = grace;
  await logIn(grace, site.url, "Grace");
  await open(grace, "Connect");
  const recentUntil = `fetch("/api/v1/me").then((answer) => answer.json())
    .then(({ session }) => Date.parse(session.recent_until))`;
  const isOld = async () => (await page.evaluate<number>(recentUntil)) < Date.now();
  await expect.poll(isOld, { interval: 250 }).toBe(true);
  await page.getByRole("button", { name: "Reveal" }).click();
  await page.getByRole("button", { name: "Log in again" }).click();
  await page.getByRole("button", { name: "Log in as Grace" }).click();
  await page.getByRole("heading", { level: 1, name: "Connect" }).waitFor();
  await page.getByRole("button", { name: "Reveal" }).click();
  await page
    .getByTestId("key")
    .filter({ hasText: /^td_[a-z]+_\w{20,}$/ })
    .waitFor();
  // The browser itself complains of the refused request, and of nothing else.
  expect(grace.complaints).toEqual([expect.stringContaining("401")]);
});
