/**
 * A key is shown to somebody who logged in a moment ago. Who did not is sent to the provider and
 * comes back to where they were.
 */

import { expect, it } from "vitest";
import { useBrowser } from "../support/browser-rig.ts";
import { open } from "../support/chromium.ts";

const rig = useBrowser({ control: { recent_login: "10s" } });

it("a login that is too old leads over a fresh one back to Connect", async () => {
  const grace = await rig.visitor("Grace");
  const { page } = grace;
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
  expect(grace.complaints.splice(0)).toEqual([expect.stringContaining("401")]);
});
