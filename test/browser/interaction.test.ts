/**
 * Impatient users, slow servers and the keyboard: actions repeated, cancelled midway, or made far
 * down a list.
 */

import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { allowComplaints, open } from "../support/chromium.ts";

const SYSTEM_ACTOR = { kind: "system", accountId: null, address: null, userAgent: null } as const;
const FOCUSED = `document.activeElement.getAttribute("aria-label")`;
const fixture = useBrowser();

/** Delays the responses to calls of this method; returns a function that releases them. */
async function heldBack(page: Page, path: string, method: string): Promise<() => void> {
  let letGo = (): void => {};
  const wait = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  await page.route(path, async (route) => {
    if (route.request().method() === method) await wait;
    await route.continue();
  });
  return letGo;
}

describe("a dialog", () => {
  it("closed before the response still reports the result", async () => {
    const { page, ...rest } = await fixture.page("Grace");
    const letGo = await heldBack(page, "**/api/v1/tokens", "POST");
    await open({ page, ...rest }, "Account");
    await page.getByRole("button", { name: "Make a token" }).click();
    await page.getByLabel("Label").fill("in haste");
    const asked = page.waitForRequest((request) => request.method() === "POST");
    await page.getByRole("button", { name: "Make the token" }).click();
    await asked;
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    letGo();
    await page.getByRole("dialog").getByText(/^tdm_/).waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "Revoke the token in haste" }).waitFor();
  });

  it("returns the focus to its button although the list was redrawn", async () => {
    const { page, ...rest } = await fixture.page("Grace");
    await open({ page, ...rest }, "Keys");
    const button = page.getByRole("button", { name: "Change the key First key" });
    await button.focus();
    await page.keyboard.press("Enter");
    await page.getByLabel("Requests a second").fill("3");
    await page.getByLabel("Burst").fill("4");
    await page.keyboard.press("Enter");
    await page.getByText("3 requests a second, a burst of 4").waitFor();
    expect(await page.evaluate(FOCUSED)).toBe("Change the key First key");
  });
});

describe("ending a session", () => {
  it("that fails at the server is not reported as ended", async () => {
    const grace = await fixture.page("Grace");
    const { page } = grace;
    await fixture.visitor("Grace");
    await page.route("**/api/v1/sessions/*", (route) =>
      route.request().method() === "DELETE" ? route.abort() : route.continue(),
    );
    await open(grace, "Account");
    await page.getByRole("button", { name: "End the session from 127.0.0.1" }).first().click();
    const dialog = page.getByRole("dialog", { name: "The session may go on" });
    await dialog.getByText("The dashboard's server cannot be reached").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    expect(await page.locator("#say").innerText()).not.toContain("ended");
    // The browser reports the aborted request, and nothing else.
    allowComplaints(grace, /ERR_FAILED/);
  });
});

describe("a long list of accounts", () => {
  it("appends each page once, and keeps its length after a change far down", async () => {
    for (let number = 1; number <= 60; number += 1) {
      const made = await fixture.site.store.accounts.create(`many ${number}`, "Beta", SYSTEM_ACTOR);
      expect(made.kind).toBe("ok");
    }
    const { page, ...rest } = await fixture.page("Ada");
    await open({ page, ...rest }, "Operator");
    await page.getByLabel("Name, login or id").fill("many");
    await page.getByRole("button", { name: "Search" }).click();
    const rows = page.getByRole("table", { name: "Accounts" }).locator("tbody tr");
    await expect.poll(() => rows.count()).toBe(50);
    await page.getByRole("button", { name: "Show more" }).dblclick();
    await page.getByRole("button", { name: "Disable many 1", exact: true }).waitFor();
    expect(await rows.count()).toBe(60);
    await page.getByRole("button", { name: "Disable many 1", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
    await page.getByRole("button", { name: "Enable many 1", exact: true }).waitFor();
    expect(await rows.count()).toBe(60);
  });
});

describe("a browser in the list of sessions", () => {
  it.each([
    ["(Linux; Android 10; K) Chrome/141.0.0.0 Mobile Safari/537.36", "Chrome 141, Android"],
    ["(Windows NT 10.0; Win64) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.1.2", "Edge 141, Windows"],
    ["(iPhone; CPU iPhone OS 18_0 like Mac OS X) CriOS/141.0 Mobile", "Chrome 141, iPhone"],
    ["(Macintosh; Intel Mac OS X 10_15) Version/18.1 Safari/605", "Safari 18, Mac OS X"],
    ["(X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox 140, Linux"],
    ["curl/8.5.0", "curl/8.5.0"],
  ])("that signs %s is called %s", async (sign, name) => {
    const { page } = await fixture.page("Grace");
    const called = `import("/views/audit.js").then(({ browserOf }) =>
      browserOf(${JSON.stringify(sign)}))`;
    expect(await page.evaluate(called)).toBe(name);
  });
});
